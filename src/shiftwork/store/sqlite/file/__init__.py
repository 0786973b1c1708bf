"""The file under the store: who opens it, which thread and process may write, who is woken."""
