"""Scripts to run from the command line."""
