import { describe, expect, it } from "vitest";
import { drawn, type Mutant } from "./draw.ts";
import { mutationsOf } from "./mutations.ts";

const SOURCE = Array.from({ length: 20 }, (_, at) => `if (a === ${at}) f(${at});`).join("\n");

function mutantsOf(source: string, file = "a.ts"): readonly Mutant[] {
  return mutationsOf(source).map((mutation) => ({ file, mutation }));
}

function texts(mutants: readonly Mutant[]): readonly string[] {
  return mutants.map(({ mutation: { before, after } }) => `${before} → ${after}`);
}

describe("a draw", () => {
  const some = drawn(mutantsOf(SOURCE), { most: 10, seed: "1" });

  it("has so many changes, each once, in the order of the code", () => {
    const lines = some.map(({ mutation }) => mutation.start);
    expect(lines).toHaveLength(10);
    expect(lines).toEqual([...new Set(lines)].sort((a, b) => a - b));
    expect(drawn(mutantsOf(SOURCE), { most: 1_000, seed: "1" })).toEqual(mutantsOf(SOURCE));
  });

  it("stays the same where other lines come, and is another one for another seed", () => {
    const [first = ""] = texts(some);
    const further = drawn(mutantsOf(`start();\n${SOURCE}`), { most: 11, seed: "1" });
    expect(texts(further)).toContain(first);
    expect(texts(further).filter((text) => texts(some).includes(text)).length).toBeGreaterThanOrEqual(10);
    expect(texts(drawn(mutantsOf(SOURCE), { most: 10, seed: "2" }))).not.toEqual(texts(some));
  });

  it("counts changes of one text one after the other", () => {
    const alike = mutantsOf("f(a === b);\nf(a === b);\nf(a === b);");
    expect(new Set(drawn(alike, { most: 2, seed: "1" })).size).toBe(2);
  });
});
