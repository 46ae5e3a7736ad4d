import { beforeAll, describe, expect, test } from "vitest";
import { ExplainService } from "../../controller/areas/groups/index.ts";
import type { Principal } from "../../controller/areas/permissions/index.ts";
import type { UserDirectory } from "../../controller/areas/users/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { admin, world, useOwnedRecords } from "./owned-world.ts";

useOwnedRecords();

describe("rules on the class of users", () => {
  const by = (...data: Principal["data"]): Principal => ({
    ...admin,
    data: [{ class: "/", access: "write" }, ...data],
  });
  const few = by({ class: "/matrix/ldap", access: "write", where: "username = 'ann'", hidden: ["remark", "email"] });
  const directory = (): UserDirectory => world.assembly.users.directory;
  let ids: Readonly<Record<string, string>>;

  beforeAll(async () => {
    await directory().createOrganization(admin, { username: "plant" });
    const made = async (username: string): Promise<string> =>
      (
        await directory().create(admin, {
          username,
          password: PASSWORD,
          rights: { grants: [], data: [] },
          parent: "/plant",
        })
      ).id;
    ids = { ann: await made("ann"), bob: await made("bob") };
    for (const id of Object.values(ids))
      await directory().change(admin, id, { details: { remark: "said nowhere", email: ["a@example.com"] } });
  });

  test("hold for the tree: neither rows nor columns come out that MQL does not show, but the way to those it does", async () => {
    const told = await directory().reader.subtree(few, "/");
    expect(told.nodes).toMatchObject([{ fullname: "/plant", otype: "org", nodes: [{ fullname: "/plant/ann" }] }]);
    expect(JSON.stringify(told)).not.toMatch(/"bob"|\/admin|said nowhere|example\.com/);
    await expect(directory().reader.subtree(few, "/plant/bob")).rejects.toMatchObject({ code: "not_found" });
    const none = await directory().reader.subtree(by({ class: "/matrix/ldap", access: "none" }), "/");
    expect(none.nodes).toEqual([]);
  });

  test("hold for changes: a user that is not seen is none", async () => {
    for (const change of [
      () => directory().change(few, ids["bob"] ?? "", { active: false }),
      () => directory().move(few, ids["bob"] ?? "", "/"),
      () => directory().remove(few, ids["bob"] ?? ""),
      () => directory().usernameOf(few, ids["bob"] ?? ""),
    ])
      await expect(change()).rejects.toMatchObject({ code: "not_found" });
    await directory().move(few, ids["ann"] ?? "", "/");
    expect((await directory().reader.subtree(admin, "/plant/bob")).fullname).toBe("/plant/bob");
    await directory().move(few, ids["ann"] ?? "", "/plant");
  });

  test("hold for members of groups: who is not seen is none, and stays one when another member is changed", async () => {
    const { groups } = world.assembly;
    const member = ["U/plant/ann", "U/plant/bob", "G/authors"];
    const { id } = await groups.create(admin, { name: "shift", member, readonly: ["/matrix/open"] });
    const memberOf = async (by: Principal): Promise<readonly string[]> => (await groups.find(by, id)).member;
    expect(await memberOf(few)).toEqual(["U/plant/ann", "G/authors"]);
    expect((await groups.list(few)).find(({ name }) => name === "shift")?.member).toEqual(["U/plant/ann", "G/authors"]);
    for (const data of [
      { class: "/matrix/ldap", access: "none" },
      { class: "/matrix/ldap", access: "read", hidden: ["username"] },
    ] as const)
      expect(await memberOf(by(data))).toEqual(["G/authors"]);
    expect(await memberOf(by({ class: "/matrix/ldap", access: "read", hidden: ["email"] }))).toEqual(member);
    // The answer is the same if an unseen user is already a member.
    const unknown = { code: "invalid", message: "member: there is no user /plant/bob." };
    await expect(groups.update(few, { id, member: ["U/plant/bob"] })).rejects.toMatchObject(unknown);
    await expect(groups.create(few, { name: "other", member: ["U/plant/bob"] })).rejects.toMatchObject(unknown);
    const edited = await groups.update(few, { id, member: ["U/plant/ann", "G/operators"] });
    expect(edited.member).toEqual(["U/plant/ann", "G/operators"]);
    expect(await memberOf(admin)).toEqual(["U/plant/ann", "G/operators", "U/plant/bob"]);
    await groups.update(few, { id, member: [] });
    expect(await memberOf(admin)).toEqual(["U/plant/bob"]);
    await groups.remove(admin, id);
  });

  test("hold for the name that a member with a typo was meant to be", async () => {
    const { groups } = world.assembly;
    const like = (by: Principal, member: string) => groups.create(by, { name: "typo", member: [member] });
    const refused = (message: string) => ({ code: "invalid", message });
    await expect(like(admin, "U/plant/bbo")).rejects.toMatchObject(
      refused("member: there is no user /plant/bbo; did you mean /plant/bob?"),
    );
    for (const member of ["U/plant/bbo", "U/plant/bob"])
      await expect(like(few, member)).rejects.toMatchObject(refused(`member: there is no user ${member.slice(1)}.`));
    await expect(like(few, "U/plant/anm")).rejects.toMatchObject(
      refused("member: there is no user /plant/anm; did you mean /plant/ann?"),
    );
  });

  test("hold for explanations: neither a member nor whoever is asked about comes out", async () => {
    const { groups, users } = world.assembly;
    await groups.create(admin, { name: "night", member: ["U/plant/ann", "U/plant/bob"], readonly: ["/matrix/open"] });
    const explaining = new ExplainService({
      groups,
      users,
      endpoints: () => world.assembly.endpoints,
      guardOf: () => Promise.resolve(undefined),
    });
    const asked = { user: "ann", class: "/matrix/open" };
    const { who } = await explaining.explain(few, asked);
    expect(who).toContainEqual({ group: "/night", how: "read /matrix/open", member: ["/plant/ann"] });
    expect(JSON.stringify(who)).not.toContain('"bob"');
    const all = (await explaining.explain(admin, asked)).who;
    expect(all.find(({ group }) => group === "/night")?.member).toEqual(["/plant/ann", "/plant/bob"]);
    for (const user of ["bob", "nobody"])
      await expect(explaining.explain(few, { ...asked, user })).rejects.toMatchObject({
        code: "not_found",
        message: `There is no user ${user}.`,
      });
    const self = { ...few, user: "bob" };
    expect(await explaining.explain(self, { class: "/matrix/open" })).toMatchObject({ user: "bob", allowed: true });
  });

  test("say nothing where none speaks of users: the permission alone opens them", async () => {
    const told = await directory().reader.subtree(
      { ...admin, data: [{ class: "/matrix/x", access: "read" }] },
      "/plant",
    );
    expect(told.nodes).toHaveLength(2);
  });
});
