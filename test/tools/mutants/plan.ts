import { resolve } from "node:path";
import type { Mutant } from "./draw.ts";
import { nearTests } from "./near-tests.ts";
import type { Numbered } from "./switched.ts";
import type { Plan } from "./trials.ts";

/** A drawn change, numbered from 1. */
export interface Drawn extends Mutant {
  readonly number: number;
}

/**
 * Plans that follow one another, one for each stage of near tests: a test tries a change when no nearer one has noticed
 * it. `further` are tests that are near to every file.
 */
export function plansFor(changes: readonly Drawn[], further: readonly string[], events: string): readonly Plan[] {
  const sources: Record<string, Numbered[]> = {};
  const stages: Record<string, number[]>[] = [];
  for (const file of new Set(changes.map((change) => change.file))) {
    const ofFile = changes.filter((change) => change.file === file);
    sources[resolve(file)] = ofFile.map(({ number, mutation }) => ({ number, mutation }));
    // Code that runs once, when it is loaded, is tried in processes of its own.
    const numbers = ofFile.filter(({ mutation }) => !mutation.around.isAtLoad).map(({ number }) => number);
    for (const [stage, tests] of nearTests(file, further).entries()) {
      const near = (stages[stage] ??= {});
      for (const test of tests) (near[test] ??= []).push(...numbers);
    }
  }
  return stages.map((near) => ({ sources, tests: Object.keys(near), near, events }));
}
