"""The commands, a module each: options in, calls of the functions beside, sentences out."""
