/** Right and wrong uses of the client: the type checker accepts the former and rejects the latter. */

import { ApiError, Client, type EndedJob, type Event, type JobStatus } from "shiftwork";

interface Shop {
  resize: { path: string; width?: number };
  sweep: Record<string, never>;
}

const client = new Client({ url: "http://127.0.0.1:8421" });
const shop = new Client<Shop>({ url: new URL("http://127.0.0.1:8421"), token: "sw_…", timeoutMs: 5_000 });

export async function right(signal: AbortSignal): Promise<string> {
  await client.enqueue("anything", { path: "a.png" }, { priority: "high", delay_seconds: 30, tags: ["acme"] });
  const { created, job } = await shop.enqueue("resize", { path: "a.png" }, { job_id: "order-17" }, { signal });
  await shop.enqueue("sweep", {});
  const ended: EndedJob<string> = await shop.wait<string>(job.id, { timeoutMs: 1_000, signal });
  for await (const event of client.events({ signal, after: 4711 })) {
    const { name, at }: Event = event;
    if (name === "pool.scaled") return at;
  }
  for await (const message of client.live()) if (message.kind === "change") return message.topics.join();
  const page = await client.jobs({ status: ["dead"], after: null });
  const status: JobStatus | undefined = page.jobs[0]?.status;
  await client.changeJobs({ action: "retry", filter: { status: ["dead"] }, rate: "10/s" });
  await client.pausePool("images");
  await client.boundPool("images", { min: null, max: 4 }, { signal });
  const remedy = (await client.overview()).problems[0]?.remedy;
  return created ? ended.result : (status ?? remedy ?? "");
}

export async function wrong(error: unknown): Promise<void> {
  // @ts-expect-error - the address is missing
  new Client({ token: "sw_…" });
  // @ts-expect-error - there is no such worker
  await shop.enqueue("resise", { path: "a.png" });
  // @ts-expect-error - an argument is missing
  await shop.enqueue("resize", {});
  // @ts-expect-error - an argument has the wrong type
  await shop.enqueue("resize", { path: 7 });
  // @ts-expect-error - there is no such priority
  await client.enqueue("resize", { path: "a.png" }, { priority: "urgent" });
  // @ts-expect-error - there is no such status
  await client.jobs({ status: ["done"] });
  // @ts-expect-error - only retries have a rate
  await client.changeJobs({ action: "cancel", filter: {}, rate: "10/s" });
  // @ts-expect-error - the reason belongs into the body
  await client.pausePool("images", "moving the disk");
  // @ts-expect-error - a job that has ended is not queued
  if ((await client.wait("1")).status === "queued") return;
  // @ts-expect-error - a job has no such field
  (await client.job("1")).state;
  // @ts-expect-error - the code of an error is not its status
  if (error instanceof ApiError && error.code === 404) return;
}
