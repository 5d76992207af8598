"""One run, from its spec to its result or its error, told as events."""

import os
import sys
import traceback

from potato_trainers import events, params, registry
from potato_trainers.bundle import Bundle
from potato_trainers.cancel import Cancellation, Cancelled
from potato_trainers.checkpoints import Checkpoints, made_of
from potato_trainers.devices import Device, choose
from potato_trainers.events import EventStream
from potato_trainers.failures import (
    EXIT_CANCELLED,
    EXIT_OK,
    EXIT_UNEXPECTED,
    Failure,
    SpecError,
    ValidationFailed,
    explain,
)
from potato_trainers.figures import figures, texts
from potato_trainers.job import Job
from potato_trainers.ranks import Place
from potato_trainers.spec import Spec, read_fields

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def run(spec_path):
    """Runs the spec and returns the exit code."""
    os.umask(0o077)
    place = Place()
    stream, fields, unreadable = None, {}, None
    try:
        fields = read_fields(spec_path)
        stream = _open_stream(fields.get("events_file") if place.rank == 0 else os.devnull)
    except SpecError as err:
        unreadable, stream = err, EventStream.to_stdout()
    run = _Run(stream, place)
    cancellation = Cancellation(run.end_as_cancelled, run.time_runs_out)
    try:
        cancellation.listen()
        if unreadable:
            raise unreadable
        result = run.train(fields)
        cancellation.over()
        stream.emit(result)
        run.forget_checkpoints()
        return EXIT_OK
    except Cancelled:
        cancellation.over()
        return run.say_cancelled()
    except BaseException as err:  # SystemExit too: a trainer must not end the process without a word
        cancellation.over()
        return run.say_failed(err)
    finally:
        place.leave()


def _open_stream(path):
    if not path:
        return EventStream.to_stdout()
    try:
        return EventStream.to_file(path)
    except (OSError, TypeError) as err:
        raise SpecError("The events file %s cannot be opened: %s" % (path, getattr(err, "strerror", err)))


class _Run:
    def __init__(self, stream, place):
        self._stream, self._place = stream, place
        self._step = ""
        self._trainer = ""
        self._checkpoints, self._saves = None, False
        self._runs_out = False  # and nobody was told yet

    def train(self, fields):
        """Does everything up to the result, which is returned rather than sent: a cancel may still come first."""
        self._say("loading bundle")
        spec = Spec(fields)
        self._trainer = spec.trainer
        if self._place.rank > 0:  # the files are rank 0's to write
            spec.workdir = self._place.scratch()
        _set_threads(spec.num_threads)
        trainer = registry.named(spec.trainer, spec.trainers_dir)
        trainer.require()
        values = _checked(spec, trainer)
        os.makedirs(spec.workdir, exist_ok=True)
        self._say("reading bundle")
        bundle = Bundle(spec.bundle_dir)
        self._checkpoints = Checkpoints(
            spec.checkpoint_dir, lambda: made_of(spec, bundle, values, trainer.about["packages"]), self._log
        )
        self._checkpoints.kept = self._place.rank == 0
        self._saves = trainer.about["checkpoints"]
        if self._runs_out:
            self.time_runs_out()
        job = Job(spec, bundle, values, self._device(spec, trainer), self._checkpoints, self._place)
        done = self._follow(trainer.load().train(job))
        return self._result(job, trainer, done)

    def _follow(self, said):
        """Passes a trainer's events on, and returns its last."""
        if not hasattr(said, "close") or not hasattr(said, "__next__"):
            raise Failure("Trainer '%s' yields nothing" % self._trainer, "its train(job) must yield done(…) last")
        try:
            for event in said:
                if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                    raise Failure(
                        "Trainer '%s' yielded %.80r, which is no event" % (self._trainer, event),
                        "yield what potato_trainers gives: status, progress, metric, log, artifact, done",
                    )
                self._note_running_out()
                if event["event"] == "done":
                    return event
                self._send(event)
        finally:
            said.close()
        raise Failure("Trainer '%s' ended without a result" % self._trainer, "its train(job) must yield done(…) last")

    def time_runs_out(self):
        """The scheduler's signal before the time limit. A signal's handler: it must not write events itself."""
        self._runs_out = True
        if self._checkpoints is not None:
            self._checkpoints.requested = True

    def _note_running_out(self):
        if self._runs_out:
            self._runs_out = False
            saves = "the next checkpoint is saved soon" if self._saves else "this trainer saves no checkpoints"
            self._log("The scheduler says that the job's time runs out; " + saves, "warning")

    def forget_checkpoints(self):
        """There is a result, so no attempt will go on from them."""
        if self._place.rank == 0:
            self._checkpoints.forget()

    def _log(self, text, level="info"):
        self._note_running_out()
        self._stream.emit(events.log(text, level))

    def _send(self, event):
        if event["event"] == "status":
            self._step = event["step"]
        if event["event"] == "artifact":
            event = dict(event, bytes=self._size(event["path"]))
        self._stream.emit(event)

    def _result(self, job, trainer, done):
        file, count = job.predicted()
        if file:
            self._workdir = job.workdir
            self._send(events.artifact(file))
        left_out = []
        metrics = figures(done["metrics"], left_out)
        by_schema = {name: figures(each, left_out) for name, each in (done["metrics_by_schema"] or {}).items()}
        if left_out:
            names = ", ".join(sorted(set(left_out)))
            self._stream.emit(events.log("Left out of the metrics, for they are no numbers: %s" % names, "warning"))
        return {
            "event": "result",
            "status": "success",
            "model_version": done["model_version"] or "%s-%s" % (trainer.name, job.run_id),
            "metrics": metrics,
            "metrics_by_schema": by_schema or {job.schemas[0].name: metrics},
            "label_order": texts(done["label_order"]),
            "notes": texts(done["notes"]),
            "predictions_file": file,
            "n_predictions": count,
            "device": job.device.name,
            "python": "%d.%d.%d" % sys.version_info[:3],
            "packages": _versions(trainer),
        }

    def _device(self, spec, trainer):
        self._workdir = spec.workdir
        if not trainer.about["uses_device"]:
            if spec.device not in ("auto", "cpu"):
                self._stream.emit(
                    events.log(
                        "'%s' trains on the CPU; the device '%s' is not used" % (trainer.name, spec.device), "warning"
                    )
                )
            return Device("cpu", "CPU")
        device = choose(spec.device)
        if self._place.world_size > 1 and device.name.startswith("cuda") and len(device.gpus) > 1:
            device = choose("cuda:%d" % self._place.local_rank)
        for warning in device.warnings:
            self._stream.emit(events.log(warning, "warning"))
        self._stream.emit(events.log("Training on %s" % device.text))
        return device

    def _size(self, path):
        try:
            return os.stat(os.path.join(self._workdir, path)).st_size
        except OSError:
            return None

    def _say(self, step):
        self._send(events.status(step))

    def say_cancelled(self):
        """The last words of a run that was told to end; returns the exit code."""
        failure = self._place.failure_of_another()
        if failure is not None:  # the ranks are ended because one of them failed
            self._say_error(*failure)
            return EXIT_UNEXPECTED
        try:
            self._stream.emit(events.status("cancelled", state="cancelled"))
            self._stream.emit(
                {"event": "error", "code": "cancelled", "message": "The run was cancelled", "install_hint": ""}
            )
        except OSError as err:
            print("The cancel could not be reported: %s" % err, file=sys.stderr)
        return EXIT_CANCELLED

    def end_as_cancelled(self):
        """The last words when the main thread does not come back from a computation."""
        code = self.say_cancelled()
        self._place.leave()
        os._exit(code)

    def say_failed(self, error):
        code, exit_code, message, hint = explain(error, self._trainer, self._step)
        cause = (
            error.__cause__ if isinstance(error, Failure) else error
        )  # what is a sentence already has no need of a trace
        try:
            if cause is not None:
                traceback.print_exception(type(cause), cause, cause.__traceback__)
            print(message, file=sys.stderr)
        except (MemoryError, OSError):
            pass
        # What rank 0 meets after another has failed, a lost connection say, is not the reason.
        code, message, hint = self._place.failure_of_another() or (code, message, hint)
        if self._place.rank > 0:
            self._place.leave_note(code, message, hint)
        self._say_error(code, message, hint)
        return exit_code

    def _say_error(self, code, message, hint):
        try:
            self._stream.emit({"event": "error", "code": code, "message": message, "install_hint": hint})
        except OSError as err:
            print("%s\nThe error could not be reported: %s" % (message, err), file=sys.stderr)


def _checked(spec, trainer):
    """Checks what the trainer is asked to do; returns the parameters with their defaults."""
    kinds = trainer.about["kinds"]
    for schema in spec.schemas:
        if schema.kind not in kinds:
            raise ValidationFailed(
                "Scheme '%s' is %s, which '%s' cannot fit; it takes %s"
                % (schema.name, schema.kind or "of no known kind", trainer.name, ", ".join(kinds))
            )
    values, problems = params.check(trainer.about["params"], spec.params)
    if problems:
        said = [
            p["message"] + ("; did you mean '%s'?" % p["suggestion"] if "suggestion" in p else "") for p in problems
        ]
        raise ValidationFailed("The parameters of '%s' do not fit: %s" % (trainer.name, "; ".join(said)))
    return values


def _set_threads(number):
    """Limits the numerical libraries. The launcher has set the variables already, unless the worker runs by hand."""
    if not number:
        return
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(number)
    if "numpy" in sys.modules:  # a warm worker's libraries have read the variables long ago
        try:
            import threadpoolctl
        except ImportError:
            return
        for pool in threadpoolctl.threadpool_info():
            if pool["num_threads"] > number:
                threadpoolctl.threadpool_limits({pool["prefix"]: number})


def _versions(trainer):
    """Versions of what the trainer used, as far as it was imported."""
    modules = dict(zip(trainer.about["packages"], (m.partition(".")[0] for m in trainer.about["imports"])))
    modules.update({"numpy": "numpy", "scipy": "scipy"})
    found = {}
    for package, module in modules.items():
        version = getattr(sys.modules.get(module), "__version__", None)
        if isinstance(version, str):
            found[package] = version
    return found
