import { CLI_WAIT_MAX_SECONDS, CLI_WAIT_SECONDS } from "../../../common/limits.ts";
import { lengthMs } from "../../../common/text/length-of-time.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { CANCELLED } from "../failure.ts";
import { CONDITIONS, type Look } from "../waiting/conditions.ts";
import { waitFor } from "../waiting/wait.ts";

/** As `timeout` of a shell says it. */
const TIMED_OUT = 124;
const LOST = 1;
const KINDS = Object.keys(CONDITIONS);

/** `odp wait` */
export const WAIT_COMMAND: CommandDeclaration = {
  name: "wait",
  summary: "wait until something has a state",
  details: `Kinds and their states, of which the first is the default: ${KINDS.map(
    (kind) => `${kind} (${Object.keys(CONDITIONS[kind] ?? {}).join(", ")})`,
  ).join(
    ", ",
  )}. A policy runs when the agents of all its hosts run it. A run is named by its id. It has ended when all its hosts and scripts have. A deployment is the newest one of <depot> or <depot>@<version> that has ended, also one of long ago.`,
  arguments: [
    { name: "kind", summary: KINDS.join(", ") },
    { name: "name", summary: "name; several are waited for together", isRepeated: true },
  ],
  flags: [
    { name: "for", value: "state", summary: "the state; default: the first one of the kind" },
    {
      name: "timeout",
      value: "time",
      summary: "how long to wait, such as 90s, 5m or 2h",
      default: `${CLI_WAIT_SECONDS / 60}m`,
    },
    {
      name: "host",
      value: "host",
      summary: "host of a deployment or depot",
      isRepeated: true,
      completes: "hosts",
    },
  ],
  exitCodes: {
    0: "the state is reached",
    1: "it can no longer be reached, or a call failed",
    [TIMED_OUT]: "the time is over",
  },
  examples: ["odp wait host web-1 --for online --timeout 10m", "odp wait depot check@1.0.0 --host web-1 --host web-2"],
  run: wait,
};

async function wait(call: Call): Promise<number> {
  const { shell } = call;
  const [kind, names, hosts] = [call.text("kind"), call.list("name"), call.list("host")];
  const condition = conditionOf(kind, call.optional("for"));
  if (hosts.length > 0 && kind !== "deployment" && kind !== "depot")
    throw new UsageError("--host is for deployments and depots.");
  const timeoutMs = timeoutOf(call.text("timeout"));
  const client = await shell.client();
  const { end, text } = await waitFor({
    look: async (signal) => allOf(await Promise.all(names.map((name) => condition(name, { client, signal, hosts })))),
    ...{ timeoutMs, clock: shell.clock, signal: shell.ended(), note: (told) => shell.note(told) },
  });
  if (end === "reached") return 0;
  if (end === "cancelled") return CANCELLED;
  const waited = call.text("timeout").replace(/^\d+$/, "$& s");
  shell.note(end === "timeout" ? `odp: ${waited} are over: ${text}` : `odp: ${text}`);
  return end === "timeout" ? TIMED_OUT : LOST;
}

/** One that can no longer be reached ends the wait for all. */
function allOf(looks: readonly Look[]): Look {
  const others = looks.filter(({ isReached }) => !isReached);
  return {
    isReached: others.length === 0,
    isLost: others.some((one) => one.isLost === true),
    text: (others.length === 0 ? looks : others).map(({ text }) => text).join("; "),
  };
}

function conditionOf(kind: string, wanted: string | undefined) {
  const states = Object.hasOwn(CONDITIONS, kind) ? CONDITIONS[kind] : undefined;
  if (states === undefined) throw new UsageError(`Kinds are ${KINDS.join(", ")}, not ${kind}.`);
  const state = wanted ?? Object.keys(states)[0] ?? "";
  const condition = Object.hasOwn(states, state) ? states[state] : undefined;
  if (condition !== undefined) return condition;
  throw new UsageError(`A ${kind} is waited for with --for ${Object.keys(states).join(" or ")}, not ${state}.`);
}

function timeoutOf(text: string): number {
  const timeoutMs = lengthMs(text);
  if (timeoutMs !== undefined && timeoutMs > 0 && timeoutMs <= CLI_WAIT_MAX_SECONDS * 1_000) return timeoutMs;
  throw new UsageError(
    `--timeout takes a time such as 90s, 5m or 2h, up to ${CLI_WAIT_MAX_SECONDS / 86_400}d, not ${text}.`,
  );
}
