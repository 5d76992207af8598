"""Ranks: the processes of one run that train together, on several GPUs or nodes.

Their launcher gives each its place in the environment. Rank 0 is the one that others listen to: what the rest report,
save and write goes nowhere, and when one of them fails it leaves a note from which rank 0 says why the run ends.
"""

import json
import os
import shutil
import tempfile


class Place:
    """Where this process stands among the ranks; alone, it is rank 0 of 1."""

    def __init__(self, environ=os.environ):
        # Not RANK: that may be set for reasons of somebody's own.
        self.among_ranks = environ.get("POTATO_RANK", "").isdigit()
        self.rank = int(environ["POTATO_RANK"]) if self.among_ranks else 0
        self.local_rank = int(environ.get("LOCAL_RANK", "0")) if self.among_ranks else 0
        self.world_size = int(environ.get("WORLD_SIZE", "1")) if self.among_ranks else 1
        self._note = environ.get("POTATO_RANK_FAILED", "") if self.among_ranks else ""
        self._scratch = ""

    def scratch(self):
        """A folder for what this rank writes and nobody wants."""
        if not self._scratch:
            self._scratch = tempfile.mkdtemp(prefix="rank-%d-" % self.rank)
        return self._scratch

    def leave(self):
        """Removes it."""
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def leave_note(self, code, message, hint):
        """Says why this rank failed, unless another one was first."""
        if not self._note:
            return
        partial = "%s.%d.%d" % (self._note, self.rank, os.getpid())
        try:
            with open(partial, "w", encoding="ascii") as file:
                json.dump({"rank": self.rank, "code": code, "message": message, "hint": hint}, file)
            try:
                os.link(partial, self._note)
            except FileExistsError:
                pass
            os.unlink(partial)
        except OSError:
            pass  # the launcher says that we failed, if not why

    def failure_of_another(self):
        """(code, message, hint) when another rank has failed, else None."""
        try:
            with open(self._note, "rb") as file:
                note = json.loads(file.read())
            if note["rank"] == self.rank:
                return None
            return str(note["code"]), "Rank %d failed: %s" % (note["rank"], note["message"]), str(note["hint"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
