import { HTTP_UPLOAD_MAX_FILES, JOB_BATCH_MAX } from "../../../common/limits.ts";
import type { Installation } from "../../e2e/installation.ts";
import { many, type HostileCall, type RouteClass } from "./calls.ts";

/** Hosts of each job of the batch; their agents are emulated. */
export const BATCH_HOSTS = Array.from({ length: 80 }, (_, at) => `host-${at}`);
const MANY = 100_000;
const TRAIL = 6_000;
const TRAIL_AT_ONCE = 100;
const BULK = "/matrix/bulk";
const BOUNDARY = "hostile-boundary";
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`;

interface Upload {
  readonly name: string;
  readonly content: string | Uint8Array;
}

function multipart(files: readonly Upload[]): Uint8Array {
  const parts = files.flatMap(({ name, content }) => [
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="uploadfile"; filename="${name}"\r\n\r\n`,
    content,
    "\r\n",
  ]);
  return Buffer.concat([...parts, `--${BOUNDARY}--\r\n`].map((part) => Buffer.from(part)));
}

function upload(name: string, path: string, file: (odp: Installation) => Upload | Promise<Upload>): HostileCall {
  return { name, path, type: MULTIPART, body: async (odp) => multipart([await file(odp)]) };
}

function read(name: string, path: string): HostileCall {
  return { name, path, method: "GET" };
}

function statement(name: string, mql: string, before?: HostileCall["before"]): HostileCall {
  return { name, path: "/mxobject/mql", body: () => JSON.stringify({ mql }), ...(before && { before }) };
}

/** Objects of the class `/matrix/bulk/<name>`, all new. */
async function fill(odp: Installation, name: string, count = MANY): Promise<void> {
  await odp.mql(`create class if not exists ${BULK}/${name} (host varchar, size int, note varchar, index(size))`);
  const at = 10_000;
  for (let from = 0; from < count; from += at) {
    const values = Array.from({ length: at }, (_, n) => [`h${from + n}`, from + n, `an ordinary note of ${n}`]);
    const mql = `insert into ${BULK}/${name} (host, size, note) values (?, ?, ?)`;
    await odp.ok("POST", "/mxobject/mql", JSON.stringify({ mql, values }));
  }
}

const job = (name: string): string => `${name}@hostile`;

async function saveJob(odp: Installation): Promise<void> {
  const definition = { name: "all", dir: "hostile", host: BATCH_HOSTS, exec: "x", groupmode: "parallel" };
  await odp.call("POST", "/job", JSON.stringify(definition));
}

const configFile = (value: string): Upload => ({
  name: "config.json",
  content: `[${many(MANY, (at) => `{"key":"/matrix/etc/${at % 100}/${at}","value":"${value}${at}"}`, ",\n")}]`,
});

const BATCHES: RouteClass = {
  name: "batches",
  calls: [
    {
      name: `job/batch of ${JOB_BATCH_MAX} jobs on ${BATCH_HOSTS.length} hosts`,
      path: "/job/batch",
      before: saveJob,
      body: () =>
        JSON.stringify({
          jobs: Array.from({ length: JOB_BATCH_MAX }, () => ({ name: job("all"), param: "{}" })),
          timeout: 50,
        }),
    },
    {
      name: "job/batch with 50 parameters of 9,000 members",
      path: "/job/batch",
      body: () => {
        const param = `{${many(9_000, (at) => `"k${at}":"${at}"`)}}`;
        return JSON.stringify({ jobs: Array.from({ length: 50 }, () => ({ name: job("none"), param })), timeout: 5 });
      },
    },
    upload("config/import of 10^5 keys, new", "/config/import", () => configFile("a")),
    upload("config/import of 10^5 keys, unchanged", "/config/import", () => configFile("a")),
    upload("config/import of 10^5 keys, changed", "/config/import", () => configFile("b")),
    upload("config/import of 10^5 keys, planned", "/config/import?plan=true", () => configFile("c")),
    {
      name: "20,000 objects to a class",
      path: "/mxobject/actiontoclass",
      before: (odp) => fill(odp, "action", 0),
      body: () => `{"data":[${many(20_000, (at) => `{"class":"${BULK}/action","host":"h${at}","size":${at}}`)}]}`,
    },
    {
      name: "10,000 rows to a table",
      path: "/extend/hostile",
      body: () => `[${many(10_000, (at) => `{"key":"k${at}","a":${at},"b":"text ${at}"}`)}]`,
    },
  ],
};

function search(name: string, cond: string): HostileCall {
  const body = (): string => JSON.stringify({ cond: `#${BULK}/out: ${cond} | top -1` });
  return { name: `search for ${name}`, path: "/mxobject/search", body };
}

const TAKEN = `create edge type if not exists contain;
create class if not exists ${BULK}/taken (host varchar, size int, note text, keys(host), index(size));
`;

const related = (count: number) => (at: number) =>
  `insert into ${BULK}/taken set host='h${at}', size=${at}, note='n ${at}', contain=['taken:h${(at * 31) % count}'];\n`;

const scriptFile = (count: number): Upload => ({
  name: "a.mql",
  content: `${TAKEN}${many(count, related(count), "")}`,
});

const table: Upload = {
  name: "a.csv",
  content: `host,size,note\n${many(50_000, (at) => `h${at},${at},"a note, of ${at}"`, "\n")}\n`,
};

async function workbook(odp: Installation): Promise<Upload> {
  const url = `${odp.url}/mxobject/export?class=${BULK}/taken&filetype=xlsx&sessionid=${await odp.session()}`;
  return { name: "a.xlsx", content: new Uint8Array(await (await fetch(url)).arrayBuffer()) };
}

const IMPORTS: RouteClass = {
  name: "imports",
  calls: [
    upload("a script of 20,000 related objects", "/mxobject/import", () => scriptFile(20_000)),
    upload("the same again", "/mxobject/import", () => scriptFile(20_000)),
    upload("the same, planned", "/mxobject/import?plan=true", () => scriptFile(20_000)),
    upload("a script of one INSERT of 10^5 rows", "/mxobject/import", () => ({
      name: "a.mql",
      content: `${TAKEN}insert into ${BULK}/taken (host, size) values ${many(MANY, (at) => `('w${at}',${at})`)};`,
    })),
    {
      ...upload("CSV of 50,000 rows", `/mxobject/import?class=${BULK}/sheet`, () => table),
      before: (odp) => fill(odp, "sheet", 0),
    },
    upload("CSV of 50,000 rows, planned", `/mxobject/import?class=${BULK}/sheet&plan=true`, () => table),
    upload("CSV of one line of 8,000,000 signs", `/mxobject/import?class=${BULK}/sheet`, () => ({
      name: "a.csv",
      content: `host,size,note\n${"a".repeat(8_000_000)}\n`,
    })),
    upload("a workbook of 20,000 related objects", "/mxobject/importclass", workbook),
    statement(
      "INSERT JSON of 20,000 objects",
      `insert json '[${many(20_000, (at) => `{"class":"${BULK}/taken","host":"j${at}"}`)}]'`,
    ),
  ],
};

const EXPORTS: RouteClass = {
  name: "exports",
  calls: [
    { ...read("objects as MQL", `/mxobject/export?class=${BULK}/`), before: (odp) => fill(odp, "out") },
    read("objects with relations as MQL", `/mxobject/export?class=${BULK}/taken&relation_defined=true`),
    read("objects as a workbook", `/mxobject/export?class=${BULK}/taken&filetype=xlsx`),
    read(
      "objects as the answer of MQL",
      `/mxobject/mql?mql=${encodeURIComponent(`select * from ${BULK}/out limit -1`)}`,
    ),
    read("the whole tenant as MQL", "/mxobject/export"),
    read("configuration", "/config/export"),
    read("configuration as a tree", "/config/get?key=/matrix/etc/1"),
    read("a page of configuration", "/config/list?limit=1000"),
    read("a table", "/extend/hostile"),
    search("a word of 10^5 objects", "ordinary"),
    search("a part of a word of 10^5 objects", "*rdinar*"),
    search("a column of 10^5 objects", "size>=0"),
  ],
};

const DELETES: RouteClass = {
  name: "changes of many",
  calls: [
    statement("UPDATE of 10^5 objects", `update ${BULK}/out set size = 1`),
    statement("DELETE of 10^5 objects", `delete from ${BULK}/gone`, (odp) => fill(odp, "gone")),
    { name: "config/del of 10^5 keys", path: "/config/del", body: () => `{"key":"/matrix/etc"}` },
    statement("DROP CLASS whose 10^5 objects were deleted", `drop class ${BULK}/gone`),
    statement("DROP CLASS of 10^5 objects", `drop class ${BULK}/out`),
  ],
};

/** Entries of changes that find nothing to change. */
async function fillTrail(odp: Installation): Promise<void> {
  const change = async (): Promise<void> => void (await odp.call("POST", "/config/del", `{"key":"/matrix/none"}`));
  for (let made = 0; made < TRAIL; made += TRAIL_AT_ONCE)
    await Promise.all(Array.from({ length: TRAIL_AT_ONCE }, change));
}

const AUDIT: RouteClass = {
  name: "audit",
  calls: [
    { ...read("export", "/audit/export"), before: fillTrail },
    read("verify", "/audit/verify"),
    read("a page of the trail", "/mxobject/mql?mql=select%20*%20from%20%2Fmatrix%2Fsystem%2Faudit%20limit%20-1"),
    {
      name: "verify with 10,000 anchors",
      path: "/audit/verify",
      body: () => JSON.stringify({ anchors: Array.from({ length: 10_000 }, (_, at) => `${at}:${"f".repeat(64)}`) }),
    },
  ],
};

const folderOf = (at: number): Upload[] =>
  Array.from({ length: HTTP_UPLOAD_MAX_FILES }, (_, n) => ({ name: `${at}-${n}.txt`, content: `file ${n}` }));

async function fileToParse(odp: Installation): Promise<void> {
  await fill(odp, "parsed", 0);
  const value = `--class=${BULK}/parsed\n--parser=csv\n--fields=host,size\n--fields_type=VAR,INT\n`;
  await odp.ok("PUT", "/mxobject/rule", JSON.stringify({ key: "/matrix/rules/hostile", value }));
  await odp.ok("PUT", "/fs/hostile/l.csv", JSON.stringify({ data: many(20_000, (at) => `h${at},${at}`, "\n") }));
}

const FILES: RouteClass = {
  name: "files and uploads",
  calls: [
    {
      name: "a text of 8,000,000 signs",
      path: "/fs/hostile/text.txt",
      method: "PUT",
      body: () => JSON.stringify({ data: "x".repeat(8_000_000) }),
    },
    upload("a file of 64 MiB", "/fs/hostile", () => ({ name: "large.bin", content: new Uint8Array(64 * 1_048_576) })),
    {
      name: `${HTTP_UPLOAD_MAX_FILES} files`,
      path: "/fs/hostile/many",
      type: MULTIPART,
      body: () => multipart(folderOf(0)),
    },
    {
      name: "a list of 2,000 files",
      path: "/fs/hostile/many?type=dir",
      method: "GET",
      before: async (odp) => {
        const url = `${odp.url}/fs/hostile/many?sessionid=${await odp.session()}`;
        for (let at = 1; at < 8; at++)
          await fetch(url, { method: "POST", headers: { "content-type": MULTIPART }, body: multipart(folderOf(at)) });
      },
    },
    {
      name: "a folder of 2,000 files is copied",
      path: "/fs/copy",
      body: () => `{"srcpath":"/hostile/many","dstpath":"/hostile/copy"}`,
    },
    { name: "a folder of 2,000 files is removed", path: "/fs/hostile/copy", method: "DELETE" },
    read("a file of 64 MiB is read", "/fs/hostile/large.bin?type=open"),
    read("a text of 8,000,000 signs is read", "/fs/hostile/text.txt?type=file"),
    upload("a depot of 16 MiB", "/monitoring/depot?name=hostile&version=1.0.0", () => ({
      name: "a.bin",
      content: new Uint8Array(16 * 1_048_576),
    })),
    {
      ...read(
        "a file of 20,000 lines is parsed",
        "/action/parsefile?rule=/matrix/rules/hostile&filename=/hostile/l.csv",
      ),
      before: fileToParse,
    },
    {
      name: "a licence of 60,000 signs",
      path: "/license/import",
      body: () => JSON.stringify({ license: "A".repeat(60_000) }),
    },
  ],
};

/** The last class, because calls of every route have been counted by then. */
const METRICS: RouteClass = { name: "metrics", calls: [read("all series", "/metrics")] };

export const BULK_CLASSES: readonly RouteClass[] = [BATCHES, IMPORTS, EXPORTS, DELETES, AUDIT, FILES, METRICS];
