// Reads patterns as JSON from standard input, and prints when each fires, as croner has it: epoch seconds, in UTC.
// The first argument is the module of croner.

const { Cron } = await import(process.argv[2]);

const parts = [];
for await (const part of process.stdin) parts.push(part);
const { after, count, patterns } = JSON.parse(Buffer.concat(parts).toString());

const fires = patterns.map((pattern) => {
  try {
    const cron = new Cron(pattern, { timezone: "UTC", mode: "5-part" });
    return cron.nextRuns(count, new Date(after * 1000)).map((run) => run.getTime() / 1000);
  } catch (error) {
    return String(error.message);
  }
});
process.stdout.write(JSON.stringify(fires));
