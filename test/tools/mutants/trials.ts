import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Numbered } from "./switched.ts";

/** Work for one process: tests, and the changes that each of them tries. */
export interface Plan {
  /** By absolute path. */
  readonly sources: Readonly<Record<string, readonly Numbered[]>>;
  /** Relative to the project, in their order. */
  readonly tests: readonly string[];
  /** Numbers of the changes to which a test is near, by test. */
  readonly near: Readonly<Record<string, readonly number[]>>;
  /** File of the events, one JSON value a line, from this process and those before it. */
  readonly events: string;
  /** A change that is on from the start. Otherwise each test runs without a change, and then with one after the other. */
  readonly number?: number;
}

/** Events of a run, in their order. Times are in ms. */
export type TrialEvent =
  | { readonly kind: "begun"; readonly test: string; readonly number?: number }
  /** Changes whose code ran while the test and its imports were loaded. */
  | { readonly kind: "loaded"; readonly test: string; readonly reached: readonly number[] }
  /** The test passes without a change. `reached` are the numbers of the changes whose code it ran, `ms` its time. */
  | { readonly kind: "measured"; readonly test: string; readonly reached: readonly number[]; readonly ms: number }
  /** The test fails without a change, so it has noticed nothing before. */
  | { readonly kind: "broken"; readonly test: string; readonly why: string }
  | { readonly kind: "unnoticed"; readonly test: string; readonly number: number }
  /** The change was tried in a process of its own, by all its near tests. */
  | { readonly kind: "alone"; readonly number: number }
  | { readonly kind: "noticed"; readonly test: string; readonly number: number; readonly why: string };

const VARIABLE = "ODP_TEST_MUTANTS";
/** A test that fails without a change in this many processes is left out. */
const BROKEN_MOST = 2;

/** The plan is in a file whose path is in the environment. */
export function planOf(environment: NodeJS.ProcessEnv): Plan {
  const path = environment[VARIABLE];
  if (path === undefined) return { sources: {}, tests: [], near: {}, events: "/dev/null" };
  return JSON.parse(readFileSync(path, "utf8")) as Plan;
}

export function environmentWith(path: string): NodeJS.ProcessEnv {
  return { ...process.env, [VARIABLE]: path };
}

export function report(path: string, event: TrialEvent): void {
  appendFileSync(path, `${JSON.stringify(event)}\n`);
}

/** Events until now. A process that was ended may have left half a line. */
export function eventsOf(path: string): readonly TrialEvent[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as TrialEvent);
}

/** The changes that are noticed, with the event that says so. */
export function noticed(events: readonly TrialEvent[]): ReadonlyMap<number, TrialEvent & { kind: "noticed" }> {
  const found = new Map<number, TrialEvent & { kind: "noticed" }>();
  for (const event of events) {
    if (event.kind === "noticed") found.set(event.number, event);
    if (event.kind !== "broken") continue;
    for (const [number, { test }] of found) if (test === event.test) found.delete(number);
  }
  return found;
}

export function isBroken(test: string, events: readonly TrialEvent[]): boolean {
  return events.filter((event) => event.kind === "broken" && event.test === test).length >= BROKEN_MOST;
}

/**
 * The changes that a test has still to try: near to it, noticed by no test yet, and, once the test is measured, in code
 * that it runs.
 */
export function leftFor(test: string, near: Plan["near"], events: readonly TrialEvent[]): readonly number[] {
  if (isBroken(test, events)) return [];
  const found = noticed(events);
  const measured = events.find((event) => event.kind === "measured" && event.test === test);
  const reached = measured?.kind === "measured" ? new Set(measured.reached) : undefined;
  const tried = new Set(
    events.flatMap((event) => (event.kind === "unnoticed" && event.test === test ? [event.number] : [])),
  );
  return (near[test] ?? []).filter(
    (number) => !found.has(number) && !tried.has(number) && (reached?.has(number) ?? true),
  );
}
