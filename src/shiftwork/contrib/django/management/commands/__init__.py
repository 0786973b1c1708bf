"""`manage.py shiftwork`."""
