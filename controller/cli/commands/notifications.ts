import { OdpClient, type FrameOf, type Socket } from "../../../common/client/index.ts";
import { CLI_RECONNECT_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { isPassing } from "../failure.ts";
import { printable, printableJson } from "../formats/printable.ts";
import { untilInterrupted } from "./following.ts";

type Frame = FrameOf<"/websocket/{subject}">;

/** `odp notify` */
export const NOTIFICATION_COMMANDS: CommandDeclaration = {
  name: "notify",
  summary: "wait for notifications of a subject, and write them as they come",
  details:
    "Subjects are datachange, jobrun, deployment, and those that scripts and rules use. Nothing is stored: only notifications that come from now on are seen. With -o json, each is one line of JSON.",
  arguments: [{ name: "subject", summary: "subject, such as jobrun" }],
  flags: [
    { name: "follow", short: "f", summary: "go on until Ctrl-C; without it, the command ends after one notification" },
    { name: "source", value: "source", summary: "only those of this source" },
    { name: "title", value: "title", summary: "only those with this title" },
  ],
  examples: ["odp notify jobrun -f", "odp notify alerts -f -o json"],
  run: notify,
};

async function notify(call: Call): Promise<number | void> {
  const { shell } = call;
  if (shell.format !== "table" && shell.format !== "json")
    throw new UsageError("Notifications are lines: use -o table or -o json.");
  const signal = shell.ended();
  let isOpen = false;
  const client = await socketClient(shell, () => {
    isOpen = true;
    shell.note(`odp: listening to ${call.text("subject")}`);
  });
  return untilInterrupted(shell, async () => {
    for (;;) {
      try {
        if (await follow(call, client)) return;
      } catch (error) {
        // A first connection that fails has a reason that the user must know. One that breaks is made again.
        if (signal.aborted || !isOpen || !isPassing(error)) throw error;
        shell.note(`odp: ${error.message} Notifications may have been missed.`);
      }
      await wait(shell.clock, CLI_RECONNECT_MS, signal);
      signal.throwIfAborted();
    }
  });
}

/** Writes the frames of one connection. Returns true if no more are wanted. */
async function follow(call: Call, client: OdpClient): Promise<boolean> {
  const { shell } = call;
  const [source, title] = [call.optional("source"), call.optional("title")];
  const query = { ...(source !== undefined && { source }), ...(title !== undefined && { title }) };
  const request = { path: { subject: call.text("subject") }, query };
  for await (const frame of client.socket("/websocket/{subject}", request, { signal: shell.ended() })) {
    const line = shell.format === "json" ? printableJson(frame) : textOf(frame, shell.clock.nowMs());
    if (!(await shell.write(`${line}\n`)) || !call.is("follow")) return true;
  }
  return false;
}

function textOf({ source, title, msg }: Frame, nowMs: number): string {
  return printable([new Date(nowMs).toISOString(), source, title, msg].filter((part) => part !== "").join("  "));
}

/** A client with WebSockets, which Node 20 does not have. */
async function socketClient(shell: Shell, onOpen: () => void): Promise<OdpClient> {
  const { url, credentials } = await shell.access();
  // Loaded when needed: other commands start faster.
  const { default: WebSocket } = await import("ws");
  const openSocket = (address: string, headers: Readonly<Record<string, string>>): Socket =>
    new WebSocket(address, { headers }).once("open", onOpen) as Socket;
  return new OdpClient({ url, openSocket, ...credentials });
}
