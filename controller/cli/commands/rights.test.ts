import { afterAll, beforeAll, expect, test } from "vitest";
import { openCommands, type Commands } from "../../../test/helpers/programs/commands.ts";

/** Users, groups, permissions and tenants, by commands against a whole controller in this process. */

let commands: Commands;
beforeAll(async () => {
  commands = await openCommands();
});
afterAll(() => commands[Symbol.asyncDispose]());

test("a user is added with a password from the standard input, changed, moved and removed", async () => {
  const { odp, json, line, url } = commands;
  const words = "user add ana --password-stdin --email ana@example.com --first-name Ana";
  expect(await odp(words, { stdin: "kestrel over oslo\n" })).toMatchObject({ code: 0, err: "" });
  expect(await json("user list --fields username,email")).toContainEqual({
    username: "ana",
    email: ["ana@example.com"],
  });
  const asAna = { ODP_URL: url, ODP_USER: "matrix.ana", ODP_PASSWORD: "kestrel over oslo" };
  expect((await line.run(["api", "get", "/user/tokens"], { environment: asAna })).code).toBe(0);

  await odp("user add staff --organisation");
  expect((await odp("user set ana --move /staff --active no --last-name Berg")).code).toBe(0);
  expect(await json("user show ana")).toMatchObject({ fullname: "/staff/ana", isactive: false, lastname: "Berg" });
  expect((await odp("user list --in /staff -o name")).out).toBe("ana\n");
  expect((await odp("user list --organisations -o name")).out).toContain("/staff\n");

  expect(await odp("user set ana --password", { stdin: "another kestrel\n" })).toMatchObject({ code: 0 });
  expect((await odp("user set ana")).code).toBe(64);
  expect((await odp("user add bob --password-stdin")).code).toBe(64);
  expect((await odp("user add ana --password-stdin", { stdin: "kestrel over oslo" })).code).toBe(1);
  expect((await odp("user show anna")).err).toContain("did you mean ana?");
  expect((await odp("user remove ana")).code).toBe(0);
  expect((await odp("user list -o name")).out).not.toContain("ana\n");
});

test("odp cluster shows the nodes of the store", async () => {
  expect(await commands.json("cluster")).toMatchObject([{ hostid: "embedded", isup: true }]);
});

test("one's own password takes the present one as well", async () => {
  const { odp } = commands;
  await odp("user add kim --password-stdin --administrator yes", { stdin: "kestrel over oslo" });
  const asKim = (present: string, stdin: string) =>
    odp("user set kim --password-stdin", { stdin, environment: { ODP_USER: "matrix.kim", ODP_PASSWORD: present } });
  expect((await asKim("kestrel over oslo", "osprey over bergen\n")).code).toBe(64);
  expect((await asKim("kestrel over oslo", "wrong\nosprey over bergen\n")).code).toBe(1);
  expect(await asKim("kestrel over oslo", "kestrel over oslo\nosprey over bergen\n")).toMatchObject({ code: 0 });
  expect((await asKim("osprey over bergen", "osprey over bergen\nkestrel over oslo\n")).code).toBe(0);
  const environment = { ODP_USER: "matrix.kim", ODP_PASSWORD: "kestrel over oslo" };
  const stdin = "kestrel over oslo\nosprey over bergen\n";
  expect(await odp("user set kim --password", { stdin, environment })).toMatchObject({ code: 0 });
});

test("a group is added below another one, and its members come and go", async () => {
  const { odp, json } = commands;
  await odp("user add eva --password-stdin", { stdin: "kestrel over oslo" });
  expect((await odp("group add /noc --member eva --read /matrix/log")).code).toBe(0);
  expect((await odp("group add /noc/night --member G/noc")).code).toBe(0);
  expect((await odp("group list -o name")).out).toMatch(/^\/noc\n\/noc\/night\n/m);
  expect(await json("group show noc")).toMatchObject({ member: ["U/eva"], readonly: ["/matrix/log"] });
  expect((await odp("group add-member /noc/night eva")).code).toBe(0);
  expect((await odp("group remove-member /noc/night G/noc")).code).toBe(0);
  expect(await json("group show /noc/night")).toMatchObject({ member: ["U/eva"] });
  expect((await odp("group remove-member /noc admin")).err).toContain("odp group show /noc");
  expect((await odp("group set /noc --write /matrix/log")).code).toBe(0);
  expect(await json("group show /noc")).toMatchObject({ writable: ["/matrix/log"], member: ["U/eva"] });
  expect((await odp("group remove /noc/night")).code).toBe(0);
});

test("perm explain says what a user may, why, and which groups give it; its exit code is the answer", async () => {
  const { odp, json } = commands;
  const may = await odp("perm explain eva --class /matrix/log");
  expect(may).toMatchObject({ code: 0, out: expect.stringMatching(/^eva may\.\n.*\/noc.*\n\ngroup .*gives/s) });
  const mayNot = await odp(["perm", "explain", "eva", "--endpoint", "DELETE /host/web-1"]);
  expect(mayNot).toMatchObject({ code: 2, out: expect.stringMatching(/^eva may not\./) });
  expect(await json("perm explain --class /matrix/log --write")).toMatchObject({ user: "admin", allowed: true });
  expect((await odp("perm explain eva")).code).toBe(64);
  expect((await odp("perm explain eva --path /x --write")).code).toBe(64);
});

test("a tenant is added, whose generated password is shown once, removed and restored", async () => {
  const { odp, json } = commands;
  const added = await odp("tenant add acme --full-name Acme --quota max_agents=5 -o json");
  expect(added).toMatchObject({ code: 0, err: expect.stringContaining("shown only now") });
  expect(JSON.parse(added.out)).toMatchObject({ password: expect.stringMatching(/.{12,}/) });
  expect(await json("tenant show acme")).toMatchObject({ fullname: "Acme", config: { max_agents: "5" } });
  expect(await odp("tenant remove acme")).toMatchObject({
    code: 0,
    err: expect.stringContaining("odp tenant restore acme"),
  });
  expect((await odp("tenant list -o name")).out).not.toContain("acme");
  expect((await odp("tenant list --removed -o name")).out).toBe("acme\n");
  expect((await odp("tenant restore acme")).code).toBe(0);
  expect((await odp("tenant list -o name")).out).toContain("acme\n");
  expect((await odp("tenant add acme2 --quota agents")).code).toBe(64);
});

test("names of users, groups and tenants are completed", async () => {
  const { odp } = commands;
  const complete = (...words: string[]) => odp(["__complete", "--", ...words]);
  expect((await complete("user", "show", "e")).out).toBe("eva\n");
  expect((await complete("group", "show", "/n")).out).toBe("/noc\n");
  expect((await complete("tenant", "remove", "ac")).out).toBe("acme\n");
});
