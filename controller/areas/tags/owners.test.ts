import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController, tagRuntime, type TagController } from "../../../test/helpers/objects/tags.ts";
import { filesArea, FileSearchService, FileService } from "../files/index.ts";
import { jobClasses, JobService } from "../jobs/index.ts";
import { NO_TRAIL } from "../../../test/helpers/areas/files.ts";
import { NAMED_HOSTS } from "../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const FILE = "filesystem:user:/a.txt";
const JOB = "jobdef:nightly@ops";

let engine: TestEngine;
let controllers: readonly TagController[];
let files: FileService;
let jobs: JobService;

function open(own: string): TagController {
  const runtime = tagRuntime();
  return tagController(engine, {
    own,
    classes: (objects) => {
      const kept = { stores: engine, objects, runtime, controllers: { own, has: () => true } };
      files = new FileService(kept);
      jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime, objects });
      return [...(filesArea(files, new FileSearchService(kept), NO_TRAIL).classes ?? []), ...jobClasses(jobs)];
    },
  });
}

beforeAll(async () => {
  engine = await openTestEngine();
  controllers = [open("one"), open("two")];
  await files.write(admin, { path: "/a.txt", space: "user" }, { text: "a" });
  await jobs.save(admin, { name: "nightly", dir: "ops", exec: ["true"], tag: ["old"] });
});
afterAll(async () => {
  for (const controller of controllers) await controller[Symbol.asyncDispose]();
  await engine.close();
});

async function tagsOf(path: string, id: string): Promise<readonly unknown[]> {
  const rows = await controllers[0]!.query.rows(admin, `select tags from ${path} where id = ?`, [id]);
  return [...((rows[0]?.["tags"] ?? []) as readonly string[])].sort();
}
const tags = async () => ({
  file: await tagsOf("/matrix/filesystem", FILE),
  job: await tagsOf("/matrix/jobs/jobdef", JOB),
});

test("files and jobs bear tags: two controllers add at once, one moves, one takes", async () => {
  const [one, two] = controllers as readonly [TagController, TagController];
  const ids = [FILE, JOB];
  await Promise.all([
    one.tags.addTo(admin, "things", { ids, tags: ["t/a"] }),
    two.tags.addTo(admin, "things", { ids, tags: ["t/b"] }),
  ]);
  expect(await tags()).toEqual({ file: ["t/a", "t/b"], job: ["old", "t/a", "t/b"] });
  expect(await one.tags.move(admin, { domain: "things", path: "t" }, "u")).toEqual([]);
  expect(await tags()).toEqual({ file: ["u/a", "u/b"], job: ["old", "u/a", "u/b"] });
  await files.write(admin, { path: "/a.txt", space: "user" }, { text: "b" });
  expect([...(await jobs.get(admin, "nightly@ops")).tag].sort()).toEqual(["old", "u/a", "u/b"]);
  await two.tags.takeFrom(admin, "things", { ids, tags: ["u/a"] });
  expect(await tags()).toEqual({ file: ["u/b"], job: ["old", "u/b"] });
});

test("who lacks the owner's permission changes nothing, nor does anybody by MQL what is not tags", async () => {
  const [one] = controllers as readonly [TagController];
  const tagger = { ...admin, user: "bob", grants: ["*:read", "tags:write"] };
  for (const id of [FILE, JOB])
    await expect(one.tags.addTo(tagger, "things", { ids: [id], tags: ["x"] }), id).rejects.toMatchObject({
      code: "denied",
    });
  for (const text of [
    "update /matrix/filesystem name = 'x' where name = 'a.txt'",
    "update /matrix/jobs/jobdef timeout = 1 where name = 'nightly'",
  ])
    await expect(one.query.rows(admin, text), text).rejects.toMatchObject({ code: "unsupported" });
});
