"""What the dashboard costs: how fast each page loads from a full store, and what watching costs.

- `company`: the app behind the dashboard: five pools, thirty workers
- `filling`: a store with a hundred thousand of its jobs
- `pages`: the requests of each page, and how long they take
- `watching`: browsers that have a page open
- `load`: what the processes of the store and the web use meanwhile
- `measure`: all of it, in order; runs in a child process
- `report`: the tables
"""
