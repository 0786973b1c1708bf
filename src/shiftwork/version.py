"""The version. The build reads it here; to ask for what is installed takes more than a megabyte of modules."""

__version__ = "0.2.0"
