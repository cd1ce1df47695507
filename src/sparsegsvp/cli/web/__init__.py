"""A page in the browser that runs the commands: drop a table, look, run, read the report.

The page has no method of its own. What is chosen there becomes the words of a command
(`forms`), which runs in a process of its own and in a folder that keeps everything (`runs`);
`server` connects the page with the runs, on this machine alone.
"""
