import { expect, test, vi } from "vitest";
import { type Field, NOWHERE } from "../../../../../common/mql/index.ts";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../../index.ts";
import { scopeOf } from "./scope.ts";

test("a name that a statement says again is not looked for again", async () => {
  const admin = testPrincipal();
  const objects = new MemoryObjects({ nowMs: () => 0, pageSize: 10 });
  await new QueryService({ objects, runtime: { clock: realClock } }).run(admin, "create class /matrix/box (Size int)");
  const scope = scopeOf(admin, await objects.catalog(admin), { path: "/matrix/box", subtree: false, alias: undefined });
  const field: Field = { kind: "field", parts: ["size"], span: NOWHERE };
  const once = scope.bind(field);
  const source = scope.source(once);
  const spellings = vi.spyOn(scope.tree, "spellings");
  expect(scope.definedName("size")).toBe("Size");
  expect(scope.bind({ ...field })).toBe(once);
  expect(scope.source(scope.bind({ ...field }))).toBe(source);
  expect(spellings).not.toHaveBeenCalled();
});
