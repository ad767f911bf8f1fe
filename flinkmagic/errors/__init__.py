"""The errors that flinkmagic raises on purpose: class, parameters and text, a module for each concern.

Only a magic's line that cannot be parsed is IPython's own `UsageError` (`magics.magic_line_parser`).

A text says what happened, where, and what to do next. A class that a user's mistake can raise derives from
`UserError`: the magics print its text alone, without a traceback of ours.
"""
