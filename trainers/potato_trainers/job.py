"""A job is what train(job) is given: one run's schemes, bundle, parameters and places to write to."""

import os

from potato_trainers.predictions import Predictions


class Job:
    """One run as its trainer sees it. `params` have their defaults filled in and fit the trainer's schema."""

    def __init__(self, spec, bundle, params, device, checkpoints, place):
        self.run_id = spec.run_id
        self.trainer = spec.trainer
        self.attempt = spec.attempt
        self.seed = spec.seed
        self.schemas = spec.schemas
        self.bundle = bundle
        self.params = params
        self.device = device
        self.num_threads = spec.num_threads
        self.max_ram_mb = spec.max_ram_mb
        self.workdir = spec.workdir
        self.checkpoint_dir = spec.checkpoint_dir
        self.rank, self.local_rank, self.world_size = place.rank, place.local_rank, place.world_size
        self._checkpoints = checkpoints
        self._predictions = None

    def path(self, *parts):
        """A path below the working directory, its folder made."""
        path = os.path.join(self.workdir, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def checkpoint(self, name="state"):
        """The folder of the last whole checkpoint of an earlier attempt, to be read from; None: begin at the beginning."""
        return self._checkpoints.last(name)

    def saving(self, name="state"):
        """`with job.saving() as folder`: what is written into the folder becomes the last checkpoint, whole or not at all."""
        return self._checkpoints.saving(name)

    @property
    def save_requested(self):
        """Whether the scheduler has said that time is running out and no checkpoint was saved since."""
        return self._checkpoints.requested

    def predictions(self):
        """The file that predictions are written to: `with job.predictions() as out`."""
        self._predictions = Predictions(self.workdir)
        return self._predictions

    def predicted(self):
        """The predictions file's name and its lines; empty when there is none."""
        if self._predictions is None or not self._predictions.file:
            return "", 0
        return self._predictions.file, self._predictions.count
