import { beforeEach, describe, expect, test } from "vitest";
import type { TestEngine } from "../../../test/helpers/engines/engine.ts";
import { useFileControllers } from "../../../test/helpers/areas/file-controllers.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagRuntime } from "../../../test/helpers/objects/tags.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import type { Principal } from "../permissions/index.ts";
import { SCRIPT_NAMES } from "../scripts/index.ts";
import type { FileName } from "./names.ts";
import { FileWorkJournal } from "./work-journal.ts";

/**
 * Users' space and system's space: which file is served, who may name the system's space, and what users may not hide.
 */

const admin = testPrincipal();
const ann: Principal = { ...admin, user: "ann", paths: ["/spaces", "/script"] };
const HIDDEN = { code: "denied", message: expect.stringContaining("would hide") };

let engine: TestEngine;
let one: FileController;
let files: FileController["files"];
useFileControllers(
  (opened) => {
    ({ engine, one } = opened);
    ({ files } = one);
  },
  { runNames: SCRIPT_NAMES },
);

let folders = 0;
let at: string;
beforeEach(() => {
  at = `/spaces/${folders++}`;
});
const users = (name: string): FileName => ({ path: at + name, space: "user" });
const systems = (name: string): FileName => ({ path: at + name, space: "system" });
const write = (name: FileName, text: string = name.space, as = admin) => files.write(as, name, { text });

async function served(name: FileName, as = ann): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of (await files.openServed(as, name)).bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe("what is served", () => {
  test("is the users' file, or else the system's, or by name the system's alone", async () => {
    await write(systems("/x"));
    expect(await served(users("/x"))).toBe("system");
    await write(users("/x"));
    expect(await served(users("/x"))).toBe("user");
    expect(await served(systems("/x"), admin)).toBe("system");
    await write(users("/own"));
    await expect(served(systems("/own"), admin)).rejects.toMatchObject({ code: "not_found" });
    await files.remove(ann, users("/x"));
    expect(await served(users("/x"))).toBe("system");
    await expect(served(users("/none"))).rejects.toMatchObject({ code: "not_found" });
  });

  test("is a file: a folder of the users' space hides none", async () => {
    await write(systems("/x"));
    await write(users("/x/below"), "below", ann);
    expect(await served(users("/x"))).toBe("system");
    expect(await served(users("/x/below"))).toBe("below");
    await files.makeFolder(ann, users("/folder"));
    await expect(served(users("/folder"))).rejects.toMatchObject({ code: "invalid" });
  });

  test("lies on a path that is open, in both spaces alike, and is what rules on files show", async () => {
    for (const name of [users("/u"), systems("/s")]) await write(name);
    const rule = { class: "/matrix/filesystem", access: "read", where: "owner = 'administrator'" } as const;
    for (const [name, text] of [
      ["/u", "user"],
      ["/s", "system"],
    ] as const) {
      await expect(served(users(name), { ...ann, paths: ["/other"] })).rejects.toMatchObject({ code: "denied" });
      expect(await served(users(name), { ...ann, data: [rule] })).toBe(text);
      const other = { ...rule, where: "owner = 'ann'" };
      await expect(served(users(name), { ...ann, data: [other] })).rejects.toMatchObject({ code: "not_found" });
    }
  });
});

test("the system's space is named by administrators only", async () => {
  await write(systems("/x"));
  const calls: Readonly<Record<string, (as: Principal) => Promise<unknown>>> = {
    exists: (as) => files.exists(as, systems("/x")),
    about: (as) => files.about(as, systems("/x")),
    list: (as) => files.list(as, systems("")).next(),
    read: (as) => files.read(as, `${at}/x`, "system"),
    open: (as) => files.open(as, `${at}/x`, "system"),
    served: (as) => files.openServed(as, systems("/x")),
    write: (as) => write(systems("/new"), "", as),
    folder: (as) => files.makeFolder(as, systems("/made")),
    note: (as) => files.note(as, systems("/x"), { tags: ["t"] }),
    retag: (as) => files.retag(as, `filesystem:system:${at}/x`, []),
    copy: (as) => files.copy(as, systems("/x"), `${at}/copied`),
    move: (as) => files.move(as, systems("/copied"), `${at}/moved`),
    rename: (as) => files.rename(as, systems("/moved"), `${at}/renamed`),
    remove: (as) => files.remove(as, systems("/x")),
  };
  for (const [name, call] of Object.entries(calls)) {
    await expect(call(ann), name).rejects.toMatchObject({ code: "denied" });
    await call(admin);
  }
});

describe("a file of the system's space is hidden by none that a user makes", () => {
  const WAYS: Readonly<Record<string, (as: Principal) => Promise<unknown>>> = {
    "is written": (as) => write(users("/app/x"), "mine", as),
    "is made empty": (as) => files.write(as, users("/app/x")),
    "is copied": (as) => files.copy(as, users("/mine/x"), `${at}/app`),
    "is moved": (as) => files.move(as, users("/mine/x"), `${at}/app`),
    "is renamed": (as) => files.rename(as, users("/mine/x"), `${at}/app/x`),
    "is in a copied folder": (as) => files.copy(as, users("/all/app"), at),
    "is in a moved folder": (as) => files.move(as, users("/all/app"), at),
    "is deep in a renamed folder": (as) => files.rename(as, users("/deep"), `${at}/app`),
  };
  test.each(Object.entries(WAYS))("where it %s, and an administrator may", async (_way, make) => {
    for (const name of ["/app/x", "/app/y/z"]) await write(systems(name));
    for (const name of ["/mine/x", "/all/app/free", "/all/app/x", "/deep/free", "/deep/y/z"])
      await write(users(name), "mine", ann);
    const before = await one.tree(ann, at);
    const path = make === WAYS["is deep in a renamed folder"] ? `${at}/app/y/z` : `${at}/app/x`;
    await expect(make(ann)).rejects.toMatchObject({ ...HIDDEN, details: { path } });
    expect(await one.tree(ann, at)).toEqual(before);
    await make(admin);
    expect([await served(users("/app/x")), await served(users("/app/y/z"))]).not.toEqual(["system", "system"]);
  });

  test("but a file of the users' that was there before is written again, and keeps hiding it", async () => {
    await write(users("/x"), "first", ann);
    expect(await write(systems("/x"))).toEqual([expect.stringContaining(`${at}/x hides this one`)]);
    expect(await write(systems("/other"))).toEqual([]);
    await write(users("/x"), "again", ann);
    expect(await served(users("/x"))).toBe("again");
    await files.remove(ann, users("/x"));
    await expect(write(users("/x"), "", ann)).rejects.toMatchObject(HIDDEN);
  });

  test("also where scripts run by another name, and where the file comes with the program", async () => {
    await write({ path: "/script/lib/bare", space: "system" });
    for (const path of ["/script/lib/bare.js", "/script/matrix/user/signedUser.js"])
      await expect(write({ path, space: "user" }, "", ann), path).rejects.toMatchObject(HIDDEN);
    const startUp = { path: "/script/matrix/user/signedUser.js", space: "user" } as const;
    await write(startUp);
    expect(await write({ ...startUp, space: "system" })).toEqual([]);
    for (const space of ["user", "system"] as const) await files.remove(admin, { path: "/script/matrix", space });
    await write(users("/from/user/signedUser.js"), "", ann);
    await expect(files.rename(ann, users("/from"), "/script/matrix")).rejects.toMatchObject(HIDDEN);
    const other = testPrincipal("administrator", "second");
    await write({ path: "/script/second/a.js", space: "system" }, "", other);
    for (const path of ["/script/matrix/a.js", "/script/matrix/user/signedUser.js"])
      await expect(write({ path, space: "user" }, "", { ...other, paths: ["/"] }), path).rejects.toMatchObject(HIDDEN);
  });

  test.each(["copy", "move"] as const)("where it comes in the middle of a %s: the file stays", async (kind) => {
    await write(users("/from/x"), "mine", ann);
    const controllers = { own: "gone", has: () => true };
    const journal = new FileWorkJournal({ stores: engine, runtime: tagRuntime(), controllers });
    await journal.beginAlone({
      ...{ id: kind, tenant: "matrix", ospace: "/matrix", user: "ann", traceparent: "", startedMs: 0 },
      ...{ kind, space: "user", from: `${at}/from`, to: `${at}/to`, at: `${at}/from`, hidesNothing: true },
    });
    await write(systems("/to/x"));
    const heir = fileController(engine, { own: "heir", gone: new Set(["gone"]) });
    await heir.files.maintain("matrix");
    await heir.files.settled();
    expect(await served(users("/to/x"))).toBe("system");
    expect(await one.tree(ann, `${at}/from`)).toEqual([`${at}/from/x`]);
    const { kv } = await engine.tenant("matrix");
    for await (const entry of entriesUnder(kv, "files/open/")) expect(entry).toBeUndefined();
    await heir[Symbol.asyncDispose]();
  });
});
