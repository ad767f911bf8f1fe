"""The stage board of a job: what its state is (`state`), what follows from news (`rules`), who does it (`drive`).

News goes in as events and instructions come out (`messages`). Nothing here knows Spark but `drive`.
"""
