"""Commands that change jobs, pools or the store itself."""
