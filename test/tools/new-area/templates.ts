/**
 * The files of an empty area: one text for each name, kept in the tenant's key-value store, put and listed over HTTP.
 */
export interface AreaNames {
  /** As in `shifts`: the folder, the path, the permission and the keys. */
  readonly name: string;
  /** As in `Shifts`. */
  readonly type: string;
}

/** Texts by their path below the root of the project. */
export function areaFiles(names: AreaNames): ReadonlyMap<string, string> {
  const folder = `controller/areas/${names.name}`;
  return new Map([
    [`common/api/${names.name}.ts`, schemas(names)],
    [`${folder}/README.md`, readme(names)],
    [`${folder}/area.ts`, area(names)],
    [`${folder}/index.ts`, index(names)],
    [`${folder}/routes.ts`, routes(names)],
    [`${folder}/service.ts`, service(names)],
    [`${folder}/store.ts`, store(names)],
    [`${folder}/${names.name}.test.ts`, test(names)],
  ]);
}

function schemas({ name, type }: AreaNames): string {
  return `import { Type } from "typebox";

/** Schemas of \`/${name}\`. */

export const ${type}List = Type.Array(Type.Object({ name: Type.String(), text: Type.String() }));

export const ${type}Put = Type.Object({ name: Type.String({ minLength: 1 }), text: Type.String() });
`;
}

function readme({ name }: AreaNames): string {
  return `# ${name}

**Purpose.** What it is for, in a sentence.

**Invariants.** What always holds, and which test fails when it does not.

**Keys and tables.** Tenant's KvStore: \`${name}/<name>\`, a text.

**Limits.** By name, as in \`common/limits.ts\`.

**Is not.** What one could look for here, and where it is.
`;
}

function area({ name, type }: AreaNames): string {
  return `import type { Area } from "../../area.ts";
import { ${name}Routes } from "./routes.ts";
import type { ${type}Service } from "./service.ts";

export function ${name}Area(${name}: ${type}Service): Area {
  return { name: "${name}", endpoints: ${name}Routes(${name}) };
}
`;
}

function index({ name, type }: AreaNames): string {
  return `export { ${name}Area } from "./area.ts";
export { ${type}Service } from "./service.ts";
`;
}

function routes({ name, type }: AreaNames): string {
  return `import { Type } from "typebox";
import { ${type}List, ${type}Put } from "../../../common/api/${name}.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { ${type}Service } from "./service.ts";

export function ${name}Routes(${name}: ${type}Service): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/${name}",
      permission: "${name}:read",
      summary: "List ${name}",
      input: Type.Object({}),
      output: ${type}List,
      handler: async ({ principal }) => ({ message: [...(await ${name}.list(principal))] }),
    }),
    endpoint({
      method: "PUT",
      path: "/${name}/:name",
      permission: "${name}:write",
      summary: "Put one of the ${name}",
      input: ${type}Put,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await ${name}.put(principal, input);
        return { message: "" };
      },
    }),
  ];
}
`;
}

function service({ name, type }: AreaNames): string {
  return `import type { Stores } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { ${type}Store, type Stored } from "./store.ts";

export class ${type}Service {
  readonly #store: ${type}Store;

  constructor({ stores }: { readonly stores: Stores }) {
    this.#store = new ${type}Store(stores);
  }

  list(principal: Principal): Promise<readonly Stored[]> {
    requirePermission(principal, "${name}:read");
    return this.#store.all(principal.tenant);
  }

  async put(principal: Principal, stored: Stored): Promise<void> {
    requirePermission(principal, "${name}:write");
    await this.#store.put(principal.tenant, stored);
  }
}
`;
}

function store({ name, type }: AreaNames): string {
  return `import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";

export interface Stored {
  readonly name: string;
  readonly text: string;
}

const PREFIX = "${name}/";

/** How ${name} lie in the tenant's key-value store. */
export class ${type}Store {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** In the order of their names. */
  async all(tenant: string): Promise<readonly Stored[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const all: Stored[] = [];
    for await (const { value } of entriesUnder(kv, PREFIX)) all.push(decodeStored<Stored>(value));
    return all;
  }

  async put(tenant: string, stored: Stored): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.put(PREFIX + stored.name, encodeJson(stored));
  }
}
`;
}

function test({ name, type }: AreaNames): string {
  return `import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { ${name}Routes } from "./routes.ts";
import { ${type}Service } from "./service.ts";

test("what is put is listed by name, to its tenant only", async () => {
  await using engine = await openTestEngine();
  const ${name} = new ${type}Service({ stores: engine });
  await ${name}.put(testPrincipal(), { name: "b", text: "second" });
  await ${name}.put(testPrincipal(), { name: "a", text: "first" });
  expect(await ${name}.list(testPrincipal())).toEqual([{ name: "a", text: "first" }, { name: "b", text: "second" }]);
  expect(await ${name}.list(testPrincipal("viewer", "second"))).toEqual([]);
});

test("a viewer reads and does not put", async () => {
  await using engine = await openTestEngine();
  await using http = await openTestHttp({ endpoints: ${name}Routes(new ${type}Service({ stores: engine })) });
  const session = await http.signIn("viewer");
  expect(await http.call(session, { url: "/${name}" })).toMatchObject({ status: "ok", message: [] });
  const payload = { text: "mine" };
  expect(await http.call(session, { url: "/${name}/a", method: "PUT", payload })).toMatchObject({ code: "denied" });
});
`;
}
