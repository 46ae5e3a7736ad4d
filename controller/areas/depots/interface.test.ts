import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tarOf } from "../../../test/helpers/runs/archives.ts";
import { multipart, openMonitoring } from "../../../test/helpers/jobs/monitoring.ts";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let admin: string;
beforeAll(async () => {
  monitoring = await openMonitoring();
  admin = await monitoring.http.signIn("admin");
});
afterAll(() => monitoring[Symbol.asyncDispose]());

type Fields = Parameters<typeof multipart>[0];
const send = async (method: "POST" | "PUT", url: string, fields: Fields, session = admin) =>
  monitoring.http.call(session, { method, url, ...(await multipart(fields)) });
const get = (url: string, session = admin) => monitoring.http.call(session, { method: "GET", url });
const archive = (entries: Parameters<typeof tarOf>[0]) => ({
  name: "depot.tar",
  content: new Uint8Array(tarOf(entries)),
});
const script = archive([{ name: "bin/check.sh", content: "#!/bin/sh\necho 1\n", mode: 0o755 }]);

describe("depots over HTTP", () => {
  test("are uploaded, listed, read, asked for, changed, compared and deleted", async () => {
    expect(
      await send("POST", "/monitoring/depot", [
        ["name", "web"],
        ["version", "1.0.0"],
        ["remark", "r"],
        ["tags", "a"],
        ["tags", "b/c"],
        ["command", "./bin/check.sh"],
        ["uploadfile", script],
      ]),
    ).toMatchObject({ status: "ok", message: { name: "web", versions: ["1.0.0"], tags: ["a", "b/c"] } });
    expect(await get("/monitoring/depot")).toMatchObject({
      status: "ok",
      message: [{ name: "web", version: "1.0.0" }],
    });
    expect(await get("/monitoring/depot/web?version=")).toMatchObject({
      message: { id: "depot:web", files: [{ path: "bin/check.sh", executable: true }] },
    });
    expect(await get("/monitoring/depot/exist/web?version=1.0.0")).toMatchObject({ status: "ok", message: true });
    expect(await get("/monitoring/depot/exist/web?version=2.0.0")).toMatchObject({ status: "ok", message: false });
    expect(await get("/monitoring/depot/file/web?version=1.0.0&filepath=bin/check.sh")).toMatchObject({
      status: "ok",
      message: "#!/bin/sh\necho 1\n",
    });
    expect(
      await send("PUT", "/monitoring/depot/file/", [
        ["name", "web"],
        ["version", "1.0.0"],
        ["newVersion", "1.0.1"],
        ["filepath", "bin/check.sh"],
        ["type", "M"],
        ["content", "#!/bin/sh\necho 2\n"],
      ]),
    ).toMatchObject({ status: "ok", message: { version: "1.0.1" } });
    expect(
      await send("PUT", "/monitoring/depot/file/web", [
        ["version", "1.0.1"],
        ["newVersion", "1.0.2"],
        ["filepath", "n"],
        ["type", "A"],
        ["content", { name: "n", content: "new" }],
      ]),
    ).toMatchObject({
      status: "ok",
      message: { version: "1.0.2", files: [{ path: "bin/check.sh" }, { path: "n", size: 3 }] },
    });
    // Three bytes that are not UTF-8 and must stay unchanged.
    const binary = [
      ["version", "1.0.2"],
      ["newVersion", "1.0.3"],
      ["filepath", "b"],
      ["type", "A"],
      ["content", { name: "b", content: Buffer.from([0xff, 0, 0xfe]) }],
    ] as const;
    expect(await send("PUT", "/monitoring/depot/file/web", binary)).toMatchObject({
      message: { files: [{ path: "b", size: 3 }, { path: "bin/check.sh" }, { path: "n" }] },
    });
    const diff = await get("/monitoring/depot/diff/web?version=1.0.0&compareVersion=1.0.2");
    expect(diff).toMatchObject({
      message: [
        { path: "bin/check.sh", change: "modified" },
        { path: "n", change: "added" },
      ],
    });
    expect(await monitoring.http.call(admin, { method: "DELETE", url: "/monitoring/depot/web" })).toMatchObject({
      status: "ok",
    });
    expect(await get("/monitoring/depot/web")).toMatchObject({ status: "error", code: "not_found" });
  });

  test("are replaced with overwrite in the query, described without their file, added without overwrite", async () => {
    const base: Fields = [
      ["name", "app"],
      ["version", "1.0.0"],
    ];
    expect(await send("PUT", "/monitoring/depot", [...base, ["uploadfile", script]])).toMatchObject({ status: "ok" });
    expect(
      await send("PUT", "/monitoring/depot", [...base, ["uploadfile", { name: "x.sh", content: "x" }]]),
    ).toMatchObject({ status: "error", code: "conflict" });
    expect(
      await send("PUT", "/monitoring/depot?overwrite=true", [...base, ["uploadfile", { name: "x.sh", content: "x" }]]),
    ).toMatchObject({ status: "ok", message: { files: [{ path: "x.sh" }] } });
    expect(await send("PUT", "/monitoring/depot?overwrite=true", [...base, ["remark", "only words"]])).toMatchObject({
      message: { remark: "only words", files: [{ path: "x.sh" }] },
    });
  });

  test("of many uploads of one version at once one wins, whole, and the others are told", async () => {
    const uploads = Array.from(
      { length: 5 },
      (_, at) =>
        [
          ["name", "raced"],
          ["version", "1.0.0"],
          ["uploadfile", { name: "x.sh", content: `${at}` }],
        ] as Fields,
    );
    const answers = await Promise.all(uploads.map((fields) => send("POST", "/monitoring/depot", fields)));
    expect(answers.map(({ status, code }) => code ?? status).sort()).toEqual([
      "conflict",
      "conflict",
      "conflict",
      "conflict",
      "ok",
    ]);
    const winner = answers.findIndex(({ status }) => status === "ok");
    expect(await get("/monitoring/depot/file/raced?version=1.0.0&filepath=x.sh")).toMatchObject({
      message: `${winner}`,
    });
  });

  test("that would leave their folder are refused and leave nothing", async () => {
    const evil = archive([
      { name: "ok", content: "1" },
      { name: "../../evil", content: "2" },
    ]);
    expect(
      await send("POST", "/monitoring/depot", [
        ["name", "evil"],
        ["version", "1.0.0"],
        ["uploadfile", evil],
      ]),
    ).toMatchObject({
      status: "error",
      code: "invalid",
      message: expect.stringContaining("leaves its folder") as string,
    });
    expect(await get("/monitoring/depot/exist/evil")).toMatchObject({ message: false });
  });

  test("are refused by name when a field is missing or wrong", async () => {
    expect(
      await send("POST", "/monitoring/depot", [
        ["name", "web"],
        ["uploadfile", script],
      ]),
    ).toMatchObject({ status: "error", message: expect.stringContaining("version") as string });
    expect(
      await send("POST", "/monitoring/depot", [
        ["name", "web"],
        ["version", "one"],
        ["uploadfile", script],
      ]),
    ).toMatchObject({ status: "error", message: expect.stringContaining("version") as string });
  });

  test("are closed to a viewer who wants to change them, and to another tenant altogether", async () => {
    const viewer = await monitoring.http.signIn("viewer");
    const other = await monitoring.http.signIn("admin", "second");
    await send("POST", "/monitoring/depot", [
      ["name", "mine"],
      ["version", "1.0.0"],
      ["uploadfile", script],
    ]);
    expect(await get("/monitoring/depot/mine", viewer)).toMatchObject({ status: "ok" });
    expect(
      await send(
        "POST",
        "/monitoring/depot",
        [
          ["name", "v"],
          ["version", "1.0.0"],
          ["uploadfile", script],
        ],
        viewer,
      ),
    ).toMatchObject({ status: "error", code: "denied" });
    expect(
      await send(
        "POST",
        "/monitoring/deploy",
        [
          ["hosts", "h1"],
          ["depots", "mine"],
          ["versions", "1.0.0"],
        ],
        viewer,
      ),
    ).toMatchObject({ status: "error", code: "denied" });
    expect(await get("/monitoring/depot/mine", other)).toMatchObject({ status: "error", code: "not_found" });
    expect(await get("/monitoring/depot", other)).toMatchObject({ status: "ok", message: [] });
  });
});

describe("depots and deployments in MQL", () => {
  test("a depot is a row; tags change through its owner, and what it does not allow is refused", async () => {
    await send("POST", "/monitoring/depot", [
      ["name", "rows"],
      ["version", "1.2.3"],
      ["uploadfile", script],
    ]);
    expect(await monitoring.mql("select name, version, versions from /matrix/system/depot where name='rows'")).toEqual([
      { name: "rows", version: "1.2.3", versions: ["1.2.3"] },
    ]);
    await monitoring.change("update /matrix/system/depot tags = tags + 'x/y' where id='depot:rows'");
    expect(await get("/monitoring/depot/rows")).toMatchObject({ message: { tags: ["x/y"] } });
    await expect(monitoring.change("insert into /matrix/system/depot name='new'")).rejects.toThrow();
    await monitoring.change("delete from /matrix/system/depot where name='rows'");
    expect(await get("/monitoring/depot/exist/rows")).toMatchObject({ message: false });
  });

  test("a deployment answers each target's state and leaves a record of each", async () => {
    await send("POST", "/monitoring/depot", [
      ["name", "dep"],
      ["version", "1.0.0"],
      ["uploadfile", script],
    ]);
    const fields: Fields = [
      ["hosts", "h1"],
      ["hosts", "h2"],
      ["hosts", "nope"],
      ["depots", "dep"],
      ["versions", "1.0.0"],
      ["timeout", "5"],
    ];
    expect(await send("POST", "/monitoring/deploy", fields)).toMatchObject({
      status: "ok",
      message: [
        { host: "h1", depot: "dep", state: "ok" },
        { host: "h2", state: "ok" },
        { host: "nope", state: "unreachable" },
      ],
      warnings: ["1 of 3 targets failed.", expect.stringMatching(/^dep 1\.0\.0 on nope: unreachable/)],
      failed: { count: 1, of: 3 },
    });
    const rows = await monitoring.mql(
      "select host, state, version from /matrix/system/deployment where depot='dep' limit 10",
    );
    expect(
      rows.map((row) => `${String(row["host"])} ${String(row["state"])} ${String(row["version"])}`).sort(),
    ).toEqual(["h1 ok 1.0.0", "h2 ok 1.0.0", "nope unreachable 1.0.0"]);
    expect(await monitoring.mql("select host from /second/system/deployment limit 10", "second")).toEqual([]);
    const undeployed = await send(
      "POST",
      "/monitoring/undeploy",
      fields.slice(0, 1).concat([
        ["depots", "dep"],
        ["versions", "1.0.0"],
      ]),
    );
    expect(undeployed).toMatchObject({ message: [{ host: "h1", state: "ok" }] });
    expect(undeployed).not.toHaveProperty("warnings");
    expect(undeployed).not.toHaveProperty("failed");
    monitoring.hosts.behaviour = () => ({ message: "not deployed" });
    expect(
      await send("POST", "/monitoring/undeploy", [
        ["hosts", "h1"],
        ["depots", "dep"],
        ["versions", "9.9.9"],
      ]),
    ).toMatchObject({
      status: "ok",
      message: [{ host: "h1", state: "ok", message: "not deployed" }],
      warnings: ["dep 9.9.9 on h1: not deployed."],
    });
    monitoring.hosts.behaviour = () => ({});
    expect(
      await send("POST", "/monitoring/deploy", [
        ["hosts", "h1"],
        ["depots", "dep"],
        ["depots", "web"],
        ["versions", "1.0.0"],
      ]),
    ).toMatchObject({ status: "error", message: expect.stringContaining("2 depots but 1 version;") as string });
  });
});

test("a deployment that waits is begun, listed, shown and cancelled over HTTP", async () => {
  const version = [
    ["name", "waited"],
    ["version", "1.0.0"],
    ["uploadfile", script],
  ] as const;
  await send("POST", "/monitoring/depot", version);
  monitoring.hosts.agents.set("h8", { isOnline: false });
  const deploy = (wait: string) =>
    send("POST", "/monitoring/deploy", [
      ["hosts", "h8"],
      ["depots", "waited"],
      ["versions", "1.0.0"],
      ["wait", wait],
    ]);
  const begun = await deploy("2h");
  const { id, createdMs, untilMs } = begun.message as { id: string; createdMs: number; untilMs: number };
  expect(untilMs - createdMs).toBe(2 * 3_600_000);
  const depots = [{ depot: "waited", version: "1.0.0" }];
  expect(await get("/monitoring/deployment")).toMatchObject({
    message: [{ id, action: "deploy", depots, username: "admin", state: "open" }],
  });
  expect(await get(`/monitoring/deployment/${id}`)).toMatchObject({
    message: { id, hosts: [{ host: "h8", state: "waiting", outcomes: [] }] },
  });
  const cancel = { method: "DELETE", url: `/monitoring/deployment/${id}` } as const;
  expect(await monitoring.http.call(admin, cancel)).toMatchObject({
    message: { cancelledBy: "admin", hosts: [{ host: "h8", state: "cancelled", message: "admin cancelled it." }] },
  });
  expect(await get("/monitoring/deployment")).toMatchObject({ message: [{ id, state: "ended" }] });
  for (const wait of ["soon", "8d", "0"])
    expect(await deploy(wait)).toMatchObject({ status: "error", code: "invalid" });
  monitoring.hosts.agents.delete("h8");
  expect(await deploy("")).toMatchObject({ message: [{ host: "h8", state: "ok" }] });
});
