import { request } from "node:http";
import { admissionOver } from "../../emulator/admission.ts";
import { EmulatedFleet } from "../../emulator/fleet.ts";
import { fillWorld } from "../../security/objects.ts";
import type { Figure } from "../driver/frame.ts";
import { BATCH_HOSTS, BULK_CLASSES } from "./bulk.ts";
import { CALL_CLASSES, type HostileCall, type RouteClass } from "./calls.ts";
import type { ProbedController, Turned } from "./turn-probe.ts";

const TURN_GOAL_MS = 50;
/** Half of the memory for bodies of all calls (`body_memory_mib`). */
const HEAP_GOAL_MB = 512;
const DEADLINE_MS = 120_000;
const ENVELOPE_BYTES = 4_096;

export const ROUTE_CLASSES: readonly RouteClass[] = [...CALL_CLASSES, ...BULK_CLASSES];

export interface PreparedCall {
  readonly call: HostileCall;
  readonly url: string;
  readonly body: Uint8Array | undefined;
}

interface Measured extends Turned {
  readonly name: string;
  readonly outcome: string;
}

/** Reports the longest turn and the highest memory for each class of routes, for users and for strangers. */
export async function routeFigures(controller: ProbedController, tell: (figure: Figure) => void): Promise<void> {
  if (chosen().length === 0) return;
  const fleet = await EmulatedFleet.start(BATCH_HOSTS, admissionOver(controller.odp), () => ({ output: ["done\n"] }));
  try {
    await fillWorld((mql, values) => controller.odp.ok("POST", "/mxobject/mql", JSON.stringify({ mql, values })));
    for (const routes of chosen()) {
      for (const isSignedIn of [true, false]) (await classFigures(controller, routes, isSignedIn)).forEach(tell);
    }
  } finally {
    await fleet.stop();
  }
}

/**
 * True for every name. For a trial, `ODP_BENCH_ROUTES` selects parts, classes and calls by the beginnings of their
 * names, separated by semicolons.
 */
export function isChosen({ name }: { readonly name: string }): boolean {
  const names = process.env["ODP_BENCH_ROUTES"]?.split(";");
  return names === undefined || names.some((one) => name.startsWith(one));
}

function chosen(): readonly RouteClass[] {
  return ROUTE_CLASSES.map((routes) =>
    isChosen(routes) ? routes : { ...routes, calls: routes.calls.filter(isChosen) },
  ).filter(({ calls }) => calls.length > 0);
}

async function classFigures(
  controller: ProbedController,
  routes: RouteClass,
  isSignedIn: boolean,
): Promise<readonly Figure[]> {
  const seen: Measured[] = [];
  for (const call of routes.calls) {
    const least = await leastOf(controller, call, isSignedIn);
    seen.push(least);
    if (isMissed(least)) console.log(`  ${routes.name}: ${told(least)}`);
    for (const stack of least.stacks ?? []) console.log(`      ${stack}`);
  }
  const [turn] = seen.toSorted((a, b) => b.turnMs - a.turnMs);
  const [heap] = seen.toSorted((a, b) => b.heapMb - a.heapMb);
  if (!turn || !heap) return [];
  const by = `${routes.name}, ${isSignedIn ? "signed in" : "a stranger"}`;
  const goal = { againstName: "the goal", kind: "most", goal: 1 } as const;
  return [
    {
      name: `${by}: longest turn, of ${turn.name} (${turn.outcome})`,
      unit: "ms",
      ours: turn.turnMs,
      against: TURN_GOAL_MS,
      ...goal,
    },
    {
      name: `${by}: heap, of ${heap.name} (${heap.outcome})`,
      unit: "MB",
      ours: heap.heapMb,
      against: HEAP_GOAL_MB,
      ...goal,
    },
  ];
}

/** Repeats a call that misses a goal, because the first one also compiles the code. */
async function leastOf(controller: ProbedController, call: HostileCall, isSignedIn: boolean): Promise<Measured> {
  const first = await measured(controller, call, isSignedIn);
  if (!isMissed(first)) return first;
  const second = await measured(controller, call, isSignedIn);
  return {
    ...second,
    turnMs: Math.min(first.turnMs, second.turnMs),
    heapMb: Math.min(first.heapMb, second.heapMb),
  };
}

async function measured(controller: ProbedController, call: HostileCall, isSignedIn: boolean): Promise<Measured> {
  if (isSignedIn) await call.before?.(controller.odp);
  const prepared = await preparedCall(controller, call, isSignedIn);
  let outcome = "";
  const turned = await controller.during(async () => (outcome = await send(prepared)));
  const seen = { ...turned, name: call.name, outcome };
  if (process.env["ODP_BENCH_TRACE"] !== undefined) console.log(`    ${told(seen)}`);
  return seen;
}

function isMissed({ turnMs }: Turned): boolean {
  return turnMs > TURN_GOAL_MS;
}

function told({ name, outcome, turnMs, heapMb }: Measured): string {
  return `${name} (${outcome}): ${turnMs.toFixed(0)} ms, ${heapMb.toFixed(0)} MB`;
}

export async function preparedCall(
  { odp }: ProbedController,
  call: HostileCall,
  isSignedIn: boolean,
): Promise<PreparedCall> {
  const { path } = call;
  const by = isSignedIn ? `${path.includes("?") ? "&" : "?"}sessionid=${await odp.session()}` : "";
  const body = await call.body?.(odp);
  return { call, url: `${odp.url}${path}${by}`, body: typeof body === "string" ? Buffer.from(body) : body };
}

/** Returns the code of the answer, or `ok`; `left` if the caller closed the connection. */
export function send({ call, url, body }: PreparedCall): Promise<string> {
  const { method = "POST", type = "application/json", coding, patienceMs } = call;
  const signal = AbortSignal.timeout(patienceMs ?? DEADLINE_MS);
  const encoded = coding === undefined ? {} : { "content-encoding": coding };
  const headers = body === undefined ? {} : { "content-type": type, "content-length": body.length, ...encoded };
  return new Promise((resolve) => {
    const sent = request(url, { method, headers, agent: false, signal }, (answer) => {
      let text = "";
      answer.on("data", (piece: Buffer) => (text += text.length < ENVELOPE_BYTES ? piece.toString("latin1") : ""));
      answer.on("error", () => resolve("left"));
      answer.on("end", () => resolve(outcomeOf(text.slice(0, ENVELOPE_BYTES))));
    });
    sent.on("error", (error: NodeJS.ErrnoException) =>
      resolve(error.name === "AbortError" || error.name === "TimeoutError" ? "left" : (error.code ?? "connection")),
    );
    sent.end(body);
  });
}

function outcomeOf(text: string): string {
  const status = /^\{"status":"(\w+)"/.exec(text)?.[1] ?? "ok";
  return status === "ok" ? "ok" : (/"code":"(\w+)"/.exec(text)?.[1] ?? status);
}
