"""celery against a running server: tasks through queues (kombu's azurestoragequeues), results in blobs.

Every task must run, its result come back as it was returned, and the queues be empty at the end. LARIMAR_QUEUE_ENDPOINT,
LARIMAR_KEY and LARIMAR_CONNECTION_STRING name the server.
"""

import os
import subprocess
import sys
import tempfile
import time
import uuid

import celery
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from celery import Celery

TASKS = 60
WORKERS = 2
PATIENCE = 300

PREFIX = os.environ.setdefault("LARIMAR_CELERY_PREFIX", "celery" + uuid.uuid4().hex[:12])
CONNECTION = os.environ["LARIMAR_CONNECTION_STRING"]

app = Celery("run", broker=f"azurestoragequeues://{os.environ['LARIMAR_KEY']}@{os.environ['LARIMAR_QUEUE_ENDPOINT']}")
app.conf.update(
    result_backend=f"azureblockblob://{CONNECTION}",
    azureblockblob_container_name=PREFIX,
    broker_transport_options={"queue_name_prefix": f"{PREFIX}-", "polling_interval": 0.1},
    broker_connection_retry_on_startup=True,
    task_default_queue="tasks",
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


@app.task(name="add")
def add(left, right):
    return left + right


@app.task(name="echo")
def echo(text):
    return {"text": text, "length": len(text)}


@app.task(name="fail")
def fail(text):
    raise ValueError(text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "celery", "--app", "run", "worker", "--pool", "solo", "--without-gossip",
                   "--without-mingle", "--without-heartbeat", "--loglevel", "warning"]
        logs = [open(os.path.join(folder, f"worker{number}.log"), "w+") for number in range(WORKERS)]
        workers = [subprocess.Popen([*command, "--hostname", f"w{number}@localhost"], stdout=log, stderr=log)
                   for number, log in enumerate(logs)]
        try:
            work()
            assert [worker.poll() for worker in workers] == [None] * WORKERS, "a worker ended by itself"
        except BaseException:
            for log in logs:
                log.seek(0)
                print(log.read()[-4000:])
            raise
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()


def work():
    long = "Grüße 世界 🦀 " * 500
    sums = [add.delay(number, 1) for number in range(TASKS)]
    echoes = [echo.delay(text) for text in ("", "a <&> b", long)]
    failed = fail.delay("as it should")
    assert [task.get(timeout=PATIENCE) for task in sums] == [number + 1 for number in range(TASKS)]
    assert [task.get(timeout=PATIENCE)["text"] for task in echoes] == ["", "a <&> b", long]
    error = failed.get(timeout=PATIENCE, propagate=False)
    assert isinstance(error, ValueError) and str(error) == "as it should", error

    results = BlobServiceClient.from_connection_string(CONNECTION).get_container_client(PREFIX)
    stored = sorted(blob.name for blob in results.list_blobs())
    wanted = sorted(f"celery-task-meta-{task.id}" for task in [*sums, *echoes, failed])
    assert stored == wanted, set(stored) ^ set(wanted)
    queues = QueueServiceClient.from_connection_string(CONNECTION)
    names = [queue.name for queue in queues.list_queues(name_starts_with=PREFIX)]
    assert names, "the tasks went through a queue"
    until = time.monotonic() + PATIENCE
    for name in names:
        queue = queues.get_queue_client(name)
        while queue.get_queue_properties().approximate_message_count:
            assert time.monotonic() < until, f"{name} is not empty"
            time.sleep(0.1)
    print(f"result: celery {celery.__version__}: tasks in queues, results in blobs")


if __name__ == "__main__":
    main()
