import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController } from "../../../test/helpers/objects/tags.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { EntityChange, ObjectStore } from "../../store/objects.ts";

const admin = testPrincipal();
const ROOT = "objects/class/matrix";

interface RootDefinition {
  readonly indexes: readonly { readonly column: string; readonly number?: number }[];
}

/** Stores in which a tag has only its own term, as before the terms for branches existed. */
function withoutBranches(stores: Stores): Stores {
  return {
    system: () => stores.system(),
    tenant: async (name) => {
      const store = await stores.tenant(name);
      return { ...store, objects: changing(store.objects) };
    },
  };
}

function changing(objects: ObjectStore): ObjectStore {
  const change: ObjectStore["change"] = (changes) => objects.change(changes.map(withoutBranchTerms));
  return new Proxy(objects, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (name === "change") return change;
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}

function withoutBranchTerms(change: EntityChange): EntityChange {
  const { addTerms } = change;
  return addTerms ? { ...change, addTerms: addTerms.filter((term) => !/^a1=.*\/$/.test(term)) } : change;
}

test("objects that were tagged before tags had branches are found below a tag, and get them", async () => {
  await using engine = await openTestEngine();
  {
    await using before = tagController(withoutBranches(engine));
    await before.query.rows(admin, "create class /matrix/old (host varchar, keys(host))");
    await before.query.rows(admin, "insert into /matrix/old host='a', tags=['os/linux/web']");
  }
  const { kv } = await engine.tenant("matrix");
  const root = decodeStored<RootDefinition>((await kv.get(ROOT))!.value);
  const indexes = root.indexes.map(({ number: _, ...index }) => index);
  await kv.put(ROOT, encodeJson({ ...root, indexes }));

  await using now = tagController(engine);
  const found = () => now.query.rows(admin, "select id from /matrix/ where tags like 'os/*'");
  expect(await found()).toEqual([{ id: "old:a" }]);
  const unready = async () => (await now.objects.indexStates(admin)).filter(({ state }) => state !== "ready");
  await expect.poll(unready, { timeout: 30_000 }).toEqual([]);
  expect(await found()).toEqual([{ id: "old:a" }]);
  const steps = await now.query.rows(admin, "explain select id from /matrix/ where tags like 'os/*'");
  expect(JSON.stringify(steps)).toContain("index tags = os/");
  expect(await now.tags.isUnused(admin, "os/linux")).toBe(false);
});
