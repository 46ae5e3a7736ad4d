import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { USER_TREE_DEPTH_MAX, USERS_READ_SINGLY_MAX } from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import type { Principal } from "../../permissions/index.ts";
import type { UserDirectory } from "../index.ts";
import { ROOT_ID } from "./organizations.ts";
import { UserService } from "../service.ts";
import type { UserNode } from "../types.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");

let http: TestHttp;
/** Random seed of the last controller, so that no two controllers draw the same values. */
let controllers = 0;
beforeEach(async () => {
  http = await openTestHttp();
});
afterEach(() => http[Symbol.asyncDispose]());

const directory = (): UserDirectory => http.users.directory;
const organization = async (username: string, parent = "/") =>
  (await directory().createOrganization(admin, { username, parent })).id;
const user = async (username: string, parent = "/") =>
  (await directory().create(admin, { username, password: PASSWORD, rights: { grants: [], data: [] }, parent })).id;

/** Paths of all nodes below a path, itself included. */
async function paths(fullname = "/", service = http.users): Promise<readonly string[]> {
  const all = (node: UserNode): readonly string[] => [node.fullname, ...node.nodes.flatMap(all)];
  return all(await service.directory.reader.subtree(admin, fullname));
}

/** The users of another controller on the same stores; `change` may wrap the key-value store. */
async function otherController(change: (kv: KvStore) => KvStore = (kv) => kv): Promise<UserService> {
  const stores = {
    system: () => http.engine.system(),
    tenant: async (name: string) => {
      const store = await http.engine.tenant(name);
      return { ...store, kv: change(store.kv) };
    },
  };
  const runtime = { ...testRuntime(), random: seededRandom(++controllers) };
  return new UserService({ runtime, stores, tenants: http.tenants, audit: http.audit });
}

describe("the tree", () => {
  test("shows organisations and users, each with its path, its place and an id of 19 or 20 digits", async () => {
    await organization("plant");
    await organization("night", "/plant");
    const id = await user("ann", "/plant/night");
    expect(await paths()).toEqual(["/", "/plant", "/plant/night", "/plant/night/ann", "/admin", "/viewer"]);
    expect(await paths("/plant/night")).toEqual(["/plant/night", "/plant/night/ann"]);
    expect(await directory().reader.subtree(admin, "/plant/night/ann")).toMatchObject({
      id: expect.stringMatching(/^\d{19,20}$/),
      username: "ann",
      parent: "/plant/night",
      otype: "usr",
      isadmin: false,
      isactive: true,
      nodes: [],
    });
    expect((await directory().reader.subtree(admin, "/plant/night/ann")).id).toBe(id);
    expect(await directory().reader.subtree(admin, "/")).toMatchObject({
      id: ROOT_ID,
      username: "/",
      parent: "",
      otype: "org",
    });
    await expect(directory().reader.subtree(admin, "/plant/day")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a move takes along all that is below, keeps ids, and never leads into itself", async () => {
    const plant = await organization("plant");
    const night = await organization("night", "/plant");
    const ann = await user("ann", "/plant/night");
    await organization("office");
    for (const time of ["there", "to where it is"]) {
      expect(await directory().move(admin, night, "/office"), time).toBe(night);
      expect(await directory().move(admin, ann, plant), time).toBe(ann);
    }
    expect(await paths()).toEqual(["/", "/office", "/office/night", "/plant", "/plant/ann", "/admin", "/viewer"]);
    await directory().move(admin, plant, night);
    for (const target of [plant, night]) {
      await expect(directory().move(admin, plant, plant)).rejects.toMatchObject({ code: "conflict" });
      await expect(
        directory().move(admin, (await directory().reader.subtree(admin, "/office")).id, target),
      ).rejects.toMatchObject({
        code: "conflict",
      });
    }
    await expect(directory().move(admin, ann, "1234567890123456789")).rejects.toMatchObject({ code: "not_found" });
    await expect(directory().move(admin, ROOT_ID, plant)).rejects.toMatchObject({ code: "invalid" });
    expect((await directory().reader.subtree(admin, "/office/night/plant/ann")).id).toBe(ann);
  });

  test("names are unique beside each other, users' in the whole tenant", async () => {
    const plant = await organization("plant");
    const lost = await organization("ann", "/plant");
    await user("ann");
    await expect(organization("plant")).rejects.toMatchObject({ code: "conflict" });
    await expect(organization("ann")).rejects.toMatchObject({ code: "conflict" });
    await expect(user("plant")).rejects.toMatchObject({ code: "conflict" });
    await expect(user("ann", "/plant")).rejects.toMatchObject({ code: "conflict" });
    await expect(directory().move(admin, lost, "/")).rejects.toMatchObject({ code: "conflict" });
    await expect(user("eve", "/nowhere")).rejects.toMatchObject({ code: "not_found" });
    for (const name of ["a/b", "a:b", "..", ".", "", "a\nb"])
      await expect(organization(name), JSON.stringify(name)).rejects.toMatchObject({ code: "invalid" });
    await expect(directory().remove(admin, plant)).rejects.toMatchObject({ code: "conflict" });
    await directory().remove(admin, lost);
    await directory().remove(admin, plant);
    expect(await paths()).toEqual(["/", "/admin", "/ann", "/viewer"]);
  });

  test("has a greatest depth, by making and by moving", async () => {
    let path = "";
    let last = "";
    for (let depth = 1; depth <= USER_TREE_DEPTH_MAX; depth++) {
      last = await organization(`d${String(depth)}`, path || "/");
      path += `/d${String(depth)}`;
    }
    await expect(organization("more", path)).rejects.toMatchObject({ code: "too_large" });
    const two = await organization("two");
    await organization("below", "/two");
    await expect(directory().move(admin, two, last)).rejects.toMatchObject({ code: "too_large" });
    await user("deep", path);
    expect(await paths(`${path}/deep`)).toEqual([`${path}/deep`]);
  });

  test("a tenant sees and changes its own alone", async () => {
    const foreign = testPrincipal("administrator", "second");
    const plant = await organization("plant");
    const ann = await user("ann", "/plant");
    for (const id of [plant, ann]) {
      await expect(directory().change(foreign, id, { active: false })).rejects.toMatchObject({ code: "not_found" });
      await expect(directory().remove(foreign, id)).rejects.toMatchObject({ code: "not_found" });
      await expect(directory().move(foreign, id, "/")).rejects.toMatchObject({ code: "not_found" });
    }
    expect(JSON.stringify(await directory().reader.subtree(foreign, "/"))).not.toContain('"ann"');
  });

  test("a user who was there before the tree is given a place once", async () => {
    const { kv } = await http.engine.tenant("matrix");
    const stored = decodeStored<object>((await kv.get("users/viewer"))?.value ?? new Uint8Array());
    const before = Object.fromEntries(
      Object.entries(stored).filter(([name]) => !["id", "parent", "details"].includes(name)),
    );
    await kv.put("users/older", encodeJson({ ...before, username: "older", fullname: "Older" }));
    await http.users.signIn({ company: "matrix", username: "older", password: PASSWORD, remote: "", traceparent: "" });
    await directory().repair("matrix");
    const { id } = await directory().reader.subtree(admin, "/older");
    expect(id).toMatch(/^\d{19,20}$/);
    await directory().repair("matrix");
    expect((await directory().reader.subtree(admin, "/older")).id).toBe(id);
    await directory().remove(admin, id);
    expect(await paths()).not.toContain("/older");
  });
});

describe("two controllers", () => {
  /** Runs the other controller's change between this controller's read and its first write. */
  function overtaken(by: () => Promise<unknown>): (kv: KvStore) => KvStore {
    let isOpen = true;
    return (kv) =>
      wrappedKv(kv, {
        async txn(request: KvTxn) {
          if (isOpen) {
            isOpen = false;
            await by();
          }
          return kv.txn(request);
        },
      });
  }

  test("that move two organisations into each other leave one where it was", async () => {
    const a = await organization("a");
    const b = await organization("b");
    const other = await otherController(overtaken(() => directory().move(admin, b, a)));
    await expect(other.directory.move(admin, a, b)).rejects.toMatchObject({ code: "conflict" });
    expect(await paths()).toEqual(["/", "/a", "/a/b", "/admin", "/viewer"]);
  });

  test("one of which deletes an organisation while the other fills it leave no orphan", async () => {
    const a = await organization("a");
    const other = await otherController(overtaken(() => user("ann", "/a")));
    await expect(other.directory.remove(admin, a)).rejects.toMatchObject({ code: "conflict" });
    const b = await organization("b");
    const filling = await otherController(overtaken(() => directory().remove(admin, b)));
    await expect(filling.directory.createOrganization(admin, { username: "c", parent: "/b" })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await paths()).toEqual(["/", "/a", "/a/ann", "/admin", "/viewer"]);
  });

  test("that make a user of one name make one", async () => {
    const other = await otherController(overtaken(() => user("ann")));
    const again = { username: "ann", password: PASSWORD, rights: { grants: [], data: [] } };
    await expect(other.directory.create(admin, again)).rejects.toMatchObject({ code: "conflict" });
  });

  test("that take the role from each other's administrator leave one", async () => {
    await directory().create(admin, { username: "boss", password: PASSWORD, rights: { role: "administrator" } });
    const ids = async (name: string) => (await directory().reader.subtree(admin, `/${name}`)).id;
    const [first, second] = [await ids("admin"), await ids("boss")];
    const other = await otherController(overtaken(() => directory().change(admin, first, { isAdmin: false })));
    await expect(other.directory.change(admin, second, { active: false })).rejects.toMatchObject({ code: "conflict" });
    await expect(directory().remove(admin, second)).rejects.toMatchObject({ code: "conflict" });
    expect(await directory().reader.subtree(admin, "/boss")).toMatchObject({ isadmin: true, isactive: true });
  });

  test("that change the tree at once all get their change in, or are told", async () => {
    const others = await Promise.all([otherController(), otherController()]);
    const services = [http.users, ...others];
    const made = await Promise.allSettled(
      Array.from({ length: 18 }, async (_, at) =>
        services[at % 3]?.directory.createOrganization(admin, { username: `o${String(at % 12)}` }),
      ),
    );
    const names = made.flatMap((one, at) => (one.status === "fulfilled" ? [`/o${String(at % 12)}`] : []));
    expect(new Set(names).size).toBe(names.length);
    const shown = (await paths()).filter((path) => path.startsWith("/o"));
    expect([...names].sort()).toEqual([...shown].sort());
    expect(shown).toHaveLength(12);
  });

  test("a change whose answer was lost is made once", async () => {
    let losses = 0;
    const other = await otherController((kv) =>
      wrappedKv(kv, {
        async txn(request: KvTxn) {
          const answer = await kv.txn(request);
          if (losses++ === 0) throw new AppError("unknown_outcome", "the answer got lost");
          return answer;
        },
      }),
    );
    const { id: id } = await other.directory.createOrganization(admin, { username: "once" });
    expect((await directory().reader.subtree(admin, "/once")).id).toBe(id);
  });

  test("while the store is away a change fails, and nothing of it is there", async () => {
    const away = () => Promise.reject(new AppError("unavailable", "the store is away"));
    const other = await otherController((kv) => wrappedKv(kv, { txn: away }));
    await expect(other.directory.createOrganization(admin, { username: "lost" })).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(await paths()).not.toContain("/lost");
  });
});

describe("rights", () => {
  const NO_RIGHTS = { grants: [], data: [] };
  const signsIn = async (username: string, password: string): Promise<boolean> =>
    (await http.users.byPassword({ login: `matrix.${username}`, password, remote: "r" }, "")) !== undefined;
  const limited: Principal = { ...admin, user: "clerk", grants: ["users:read", "users:write"], data: [] };

  test("no user gives more than the own rights, nor changes one who has more", async () => {
    const boss = (await directory().reader.subtree(admin, "/admin")).id;
    const ann = await user("ann");
    const denied = { code: "denied" };
    const make = (rights: Parameters<UserService["create"]>[1]["rights"], groups: readonly string[] = []) =>
      directory().create(limited, { username: "eve", password: PASSWORD, rights, groups });
    await expect(make({ role: "administrator" })).rejects.toMatchObject(denied);
    await expect(make({ grants: ["hosts:run"], data: [] })).rejects.toMatchObject(denied);
    await expect(make({ grants: [], data: [{ class: "/", access: "write" }] })).rejects.toMatchObject(denied);
    await expect(make({ grants: [], data: [] }, ["/administrators"])).rejects.toMatchObject(denied);
    await expect(directory().change(limited, ann, { isAdmin: true })).rejects.toMatchObject(denied);
    await expect(directory().change(limited, ann, { groups: ["/administrators"] })).rejects.toMatchObject(denied);
    await expect(directory().update(limited, "ann", { rights: { role: "viewer" } })).rejects.toMatchObject(denied);
    await expect(directory().update(limited, "ann", { groups: ["/administrators"] })).rejects.toMatchObject(denied);
    await expect(directory().change(limited, boss, { password: "another password" })).rejects.toMatchObject(denied);
    await expect(directory().setPassword(limited, "admin", "another password")).rejects.toMatchObject(denied);
    await expect(directory().govern(limited, "admin", { groups: [], governed: [] })).rejects.toMatchObject(denied);
    await expect(directory().remove(limited, boss)).rejects.toMatchObject(denied);
    await expect(directory().move(limited, boss, "/")).rejects.toMatchObject(denied);
    await make({ grants: ["users:read"], data: [] });
    await directory().change(limited, ann, { active: false, password: "another password" });
    expect(await directory().reader.subtree(admin, "/ann")).toMatchObject({ isadmin: false, isactive: false });
  });

  test("names of users are known, by their names or among all users where there are many", async () => {
    await user("gus");
    const many = Array.from({ length: USERS_READ_SINGLY_MAX }, (_, at) => `nobody${at}`);
    for (const others of [["nobody", "a/b", ""], many])
      expect(await directory().reader.knownNames(admin, new Set(["gus", ...others]))).toEqual(new Set(["gus"]));
  });

  test("what groups give counts as the own rights of their members do", async () => {
    const boss = { code: "denied", message: expect.stringContaining("beyond the own ones") };
    const gus = await user("gus");
    await http.users.create(admin, { username: "ivy", password: PASSWORD, rights: NO_RIGHTS, groups: ["/operators"] });
    const ivy = (await directory().reader.subtree(admin, "/ivy")).id;
    await http.groups.create(admin, { name: "crew", member: ["U/gus", "U/later"] });
    await http.groups.update(admin, { name: "operators", member: ["G/crew"] });
    const password = "another password";
    for (const id of [gus, ivy]) {
      await expect(directory().change(limited, id, { password })).rejects.toMatchObject(boss);
      await expect(directory().change(limited, id, { details: { email: ["clerk@b"] } })).rejects.toMatchObject(boss);
      await expect(directory().remove(limited, id)).rejects.toMatchObject(boss);
      await expect(directory().move(limited, id, "/")).rejects.toMatchObject(boss);
      await expect(http.users.signIns.endAll(limited, id)).rejects.toMatchObject(boss);
    }
    await expect(http.users.setPassword(limited, "gus", password)).rejects.toMatchObject(boss);
    await expect(http.users.update(limited, "gus", { active: false })).rejects.toMatchObject(boss);
    const later = { username: "later", password: PASSWORD, rights: NO_RIGHTS };
    await expect(http.users.create(limited, later), "a group names the user already").rejects.toMatchObject(boss);
    expect(await signsIn("gus", PASSWORD)).toBe(true);
  });

  test("who has all that a member of a group has may change the member", async () => {
    const gus = await user("gus");
    await user("clerk");
    await http.groups.create(admin, { name: "crew", member: ["U/gus"], readonly: ["/matrix/a"], readexps: ["a = 1"] });
    const password = "another password";
    const clerk = async (): Promise<Principal> => {
      const present = await http.users.present("matrix", "clerk");
      return { ...limited, ...present, grants: [...limited.grants, ...(present?.grants ?? [])] };
    };
    await expect(directory().change(await clerk(), gus, { password })).rejects.toMatchObject({ code: "denied" });
    await http.groups.update(admin, { name: "crew", member: ["U/gus", "U/clerk"] });
    await directory().change(await clerk(), gus, { password });
    expect(await signsIn("gus", password)).toBe(true);
    await http.groups.api.create(admin, "tools", ["/script/tools"]);
    await http.groups.create(admin, { name: "tools", member: ["U/gus"] });
    await http.groups.api.addGroups(admin, "tools", ["/tools"]);
    await expect(directory().change(await clerk(), gus, { password })).rejects.toMatchObject({ code: "denied" });
  });

  test("all permissions without all data are not those of an administrator", async () => {
    const most: Principal = { ...admin, user: "most", data: [{ class: "/matrix/a", access: "write" }] };
    const boss = (await directory().reader.subtree(admin, "/admin")).id;
    const denied = { code: "denied" };
    await expect(directory().change(most, boss, { password: "another password" })).rejects.toMatchObject(denied);
    const eve = { username: "eve", password: PASSWORD, rights: { role: "administrator" } as const };
    await expect(directory().create(most, eve)).rejects.toMatchObject(denied);
  });

  test("a user without the right to read users sees the own node alone", async () => {
    await user("ann");
    const ann = { ...viewer, user: "ann", grants: [], data: [] };
    const seen: string[] = [];
    for await (const page of directory().reader.nodes(ann)) seen.push(...page.map(({ username }) => username));
    expect(seen).toEqual(["ann"]);
    expect(await directory().reader.self(ann)).toMatchObject({ username: "ann", fullname: "/ann" });
    const boss = (await directory().reader.subtree(admin, "/admin")).id;
    await expect(directory().reader.located(ann, boss)).rejects.toMatchObject({ code: "denied" });
  });

  test("the last active administrator stays", async () => {
    const boss = (await directory().reader.subtree(admin, "/admin")).id;
    const conflict = { code: "conflict" };
    await expect(directory().remove(admin, boss)).rejects.toMatchObject(conflict);
    await expect(directory().change(admin, boss, { isAdmin: false })).rejects.toMatchObject(conflict);
    await expect(directory().update(admin, "admin", { active: false })).rejects.toMatchObject(conflict);
    await directory().change(admin, boss, { password: "another password", details: { email: ["a@b"] } });
    expect(await directory().reader.subtree(admin, "/admin")).toMatchObject({ isadmin: true, email: ["a@b"] });
  });

  test("that cannot leave its groups stays: gone before them, a new one of its name would have their rights", async () => {
    const { directory } = new UserService({
      runtime: testRuntime(),
      stores: http.engine,
      tenants: http.tenants,
      audit: http.audit,
      groups: {
        rightsOf: () => Promise.resolve(undefined),
        forget: () => Promise.reject(new AppError("unavailable", "away")),
        requireGroups: () => Promise.resolve(),
        onChange: () => undefined,
      },
    });
    const id = await user("gus");
    await expect(directory.remove(admin, id)).rejects.toMatchObject({ code: "unavailable" });
    expect(await http.users.directory.remove(admin, id)).toEqual([]);
  });

  test("what stops with a user is told to who deletes him", async () => {
    const users = new UserService({
      runtime: testRuntime(),
      stores: http.engine,
      tenants: http.tenants,
      audit: http.audit,
      authored: [{ endsWith: (_principal, username) => Promise.resolve([`a rule of ${username} stops`]) }],
    });
    expect(await users.directory.remove(admin, await user("ann"))).toEqual(["a rule of ann stops"]);
  });
});
