import { Command } from "commander";
import { Client } from "../../common/client/client.ts";
import { errorText } from "../../common/errors.ts";
import { table } from "./table.ts";

/** `odp`: the command line. A client of the HTTP interface like any other. */

const CALL_TIMEOUT_MS = 120_000;

const program = new Command("odp")
  .description("Operations data platform, from the command line")
  .option("--url <url>", "the controller", process.env["ODP_URL"] ?? "http://127.0.0.1:8080")
  .option("--user <tenant.user>", "who asks", process.env["ODP_USER"] ?? "matrix.admin")
  .option("--json", "answer as JSON")
  .addHelpText("after", "\nThe password is read from ODP_PASSWORD.");

program
  .command("mql <statement>")
  .description("run MQL and show the rows of its last statement")
  .action(async (statement: string) =>
    show(await client().call("POST", "/mxobject/mql", { body: { mql: statement } })),
  );

program
  .command("hosts")
  .description("list hosts")
  .action(async () => show(await client().call("GET", "/host")));

program
  .command("token [host]")
  .description("make a one-time token with which an agent joins")
  .action(async (host?: string) => show(await client().call("POST", "/agent/token", { body: { host } })));

program
  .command("exec <host> <command...>")
  .description("run a command on a host and show its output")
  .option("--timeout <seconds>", "how long it may take", "60")
  .action(async (host: string, command: readonly string[], { timeout }: { timeout: string }) => {
    const param = JSON.stringify({ cmd: command.join(" "), "HOST!": host, timeout: Number(timeout) });
    const query = { param, receive_output: "true", timeout };
    show(await client().call("GET", "/job/remote_command@system/common", { query }));
  });

try {
  await program.parseAsync();
} catch (error) {
  console.error(`odp: ${errorText(error)}`);
  process.exitCode = 1;
}

function client(): Client {
  const { url, user } = program.opts<{ url: string; user: string }>();
  const credentials = Buffer.from(`${user}:${process.env["ODP_PASSWORD"] ?? ""}`).toString("base64");
  return new Client({ url, authorization: `Basic ${credentials}`, fetch, timeoutMs: CALL_TIMEOUT_MS });
}

function show(answer: unknown): void {
  if (program.opts<{ json?: boolean }>().json) console.log(JSON.stringify(answer, undefined, 2));
  else if (Array.isArray(answer)) console.log(table(answer));
  else console.log(typeof answer === "string" ? answer.trimEnd() : JSON.stringify(answer, undefined, 2));
}
