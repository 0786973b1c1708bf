"""Values to show: what a person, a page or a program is shown of the state. Nothing here asks the store."""
