"""What the dashboard costs: how soon each page answers with a full store behind it, and what watching takes.

- `company`: the app whose store it is: five pools, thirty workers
- `filling`: a store with a hundred thousand jobs of it
- `pages`: what each page of the dashboard asks, and how long it waits for the answers
- `watching`: browsers that have a page open
- `load`: what the store's and the web's processes use meanwhile
- `measure`: all of it, in order; runs in a child
- `report`: the tables
"""
