"""A child process: start it, speak with it, notice its death, look into it, end it."""
