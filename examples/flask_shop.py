"""Flask: a view adds a job, which runs in an app context. `flask --app examples.flask_shop shiftwork run` runs jobs."""

from flask import Flask, current_app

from shiftwork import ResultTimeoutError, WorkerOrchestrator
from shiftwork.contrib.flask import Shiftwork

jobs = WorkerOrchestrator("memory://")
shiftwork = Shiftwork(jobs)


@jobs.task
def invoice(order: int) -> str:
    return f"{current_app.config['SHOP']}-{order}.pdf"  # and db.session, if you use Flask-SQLAlchemy


def create_app() -> Flask:
    web = Flask(__name__)
    web.config["SHOP"] = "chairs"
    shiftwork.init_app(web)

    @web.post("/invoices/<int:order>")
    def order_invoice(order: int) -> tuple[dict[str, str], int]:
        job = invoice.enqueue_blocking(order=order)
        try:
            return {"file": job.blocking.result(timeout_seconds=10)}, 200
        except ResultTimeoutError:
            return {"job": job.id}, 202  # it continues

    return web


if __name__ == "__main__":
    client = create_app().test_client()
    jobs.blocking.start()  # jobs run in a background thread of this process
    print(client.post("/invoices/7").get_json())
    jobs.blocking.stop()
