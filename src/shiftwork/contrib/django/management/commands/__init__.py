"""`manage.py shiftwork`. Django finds a command by the name of its file."""
