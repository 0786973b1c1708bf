"""Values as a store keeps them: how large they may be, what is hidden or encrypted. Nothing here knows a rule."""
