import { resolve } from "node:path";
import type { Mutant } from "./draw.ts";
import { nearTests } from "./near-tests.ts";
import type { Numbered } from "./switched.ts";
import type { Plan } from "./trials.ts";

/** A drawn change, numbered from 1. */
export interface Drawn extends Mutant {
  readonly number: number;
}

/** Near tests of these changes, the nearest first. `further` are tests that are near to every file. */
export function planFor(changes: readonly Drawn[], further: readonly string[], events: string): Plan {
  const sources: Record<string, Numbered[]> = {};
  const near: Record<string, number[]> = {};
  const stages = new Map<string, number>();
  for (const file of new Set(changes.map((change) => change.file))) {
    const ofFile = changes.filter((change) => change.file === file);
    sources[resolve(file)] = ofFile.map(({ number, mutation }) => ({ number, mutation }));
    for (const [stage, tests] of nearTests(file, further).entries()) {
      for (const test of tests) {
        (near[test] ??= []).push(...ofFile.map(({ number }) => number));
        stages.set(test, Math.min(stage, stages.get(test) ?? stage));
      }
    }
  }
  const tests = [...stages].sort(([, left], [, right]) => left - right).map(([test]) => test);
  return { sources, tests, near, events };
}
