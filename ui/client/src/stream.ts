/** Reads server-sent events from a response, as the HTML standard has it. */

/** A message of the stream. */
export interface Message {
  event: string;
  data: string;
  id: string | null;
}

/** Yields the messages of a stream until it ends. `heard` is called for every piece, also for comments. */
export async function* messages(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const blocks = (rest + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const message = parsed(block);
        if (message) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parsed(block: string): Message | null {
  const fields = new Map<string, string[]>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    fields.set(name, [...(fields.get(name) ?? []), value]);
  }
  const data = fields.get("data");
  if (!data) return null;
  return {
    event: fields.get("event")?.at(-1) ?? "message",
    data: data.join("\n"),
    id: fields.get("id")?.at(-1) ?? null,
  };
}
