import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type World } from "../test/security/world.ts";

const JSON_TYPE = "application/json;charset=utf-8";
const FORM = "application/x-www-form-urlencoded";
const BOUNDARY = "X";

let world: World;
let session: string;

beforeAll(async () => {
  world = await openWorld();
  session = await world.signIn();
  expect(
    await message("POST", "/mxobject/mql", "create class /matrix/box (host varchar, keys(host))", "text/plain"),
  ).toEqual([]);
  expect(await message("PUT", "/fs/kept.txt", `{"data":"as it was"}`)).toBe("");
});

afterAll(() => world[Symbol.asyncDispose]());

type Method = "GET" | "POST" | "PUT" | "DELETE";

function call(method: Method, path: string, payload?: string, type = JSON_TYPE) {
  const url = `${path}${path.includes("?") ? "&" : "?"}sessionid=${session}`;
  return world.app.inject({
    method,
    url,
    ...(payload !== undefined && { payload, headers: { "content-type": type } }),
  });
}

async function envelope(...sent: Parameters<typeof call>): Promise<Record<string, unknown>> {
  return (await call(...sent)).json();
}

async function message(...sent: Parameters<typeof call>): Promise<unknown> {
  const answer = await envelope(...sent);
  expect(answer, sent.join(" ")).toMatchObject({ status: "ok" });
  return answer.message;
}

describe("a query name that is not known is a warning with the nearest name, also of answers without an envelope", () => {
  test.each([
    ["/mxobject/export?class=/matrix/box&recursve=true", "recursve", "recursive"],
    ["/mxobject/export?class=/matrix/box&filetype=xlsx&recursve=true", "recursve", "recursive"],
    ["/config/export?kye=/matrix/x", "kye", "key"],
    ["/audit/export?frm=2020", "frm", "from"],
    ["/fs/kept.txt?tpye=check", "tpye", "type"],
    ["/fs/kept.txt?typ=download", "typ", "type"],
    ["/static/kept.txt?isys=true", "isys", "issys"],
  ])("%s", async (path, name, meant) => {
    const { statusCode, headers } = await call("GET", path);
    expect([statusCode, headers["x-odp-warnings"]]).toEqual([
      200,
      JSON.stringify([`${name} is not known here and was ignored; did you mean ${meant}?`]),
    ]);
  });
});

const multipart = (name: string, filename?: string): string =>
  `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${filename === undefined ? "" : `; filename="${filename}"`}\r\n\r\nabc\r\n--${BOUNDARY}--\r\n`;
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`;
const NOT_DATA = "data is missing, and content is not known here.";
const FILE = "name=d&version=1.0.0&newVersion=1.0.1&filepath=run.sh";

describe("content under a name that is not known, or in a form that is not read, is an error and changes nothing", () => {
  test.each<readonly [Method, string, string, string, string]>([
    ["PUT", "/fs/kept.txt", `{"content":"new"}`, JSON_TYPE, NOT_DATA],
    ["PUT", "/fs/kept.txt", `{"content":"new","tags":["a"]}`, JSON_TYPE, NOT_DATA],
    ["PUT", "/fs/kept.txt", "content=new", FORM, NOT_DATA],
    ["PUT", "/fs/kept.txt", multipart("content"), MULTIPART, NOT_DATA],
    [
      "PUT",
      "/fs/kept.txt",
      "colour=red&dta=new",
      FORM,
      "data is missing, and dta is not known here; did you mean data?",
    ],
    ["PUT", "/fs/kept.txt", "new", "text/plain", "data is missing: the body is neither JSON nor a form."],
    ["PUT", "/fs/kept.txt", "new", JSON_TYPE, "data is missing: the body is neither JSON nor a form."],
    ["POST", "/fs/kept.txt", "content=new", FORM, NOT_DATA],
    [
      "PUT",
      "/fs/kept.txt?type=attr",
      `{"atr":"{}"}`,
      JSON_TYPE,
      "attr is missing, and atr is not known here; did you mean attr?",
    ],
    ["PUT", "/fs/kept.txt?type=tag", "tag[]=a", FORM, "tags is missing, and tag is not known here; did you mean tags?"],
    [
      "POST",
      "/mxobject/mql",
      `{"mqll":"drop class /matrix/box"}`,
      JSON_TYPE,
      "mql is missing, and mqll is not known here; did you mean mql?",
    ],
    [
      "POST",
      "/mxobject/mql",
      "mqll=drop&meta=true",
      FORM,
      "mql is missing, and mqll is not known here; did you mean mql?",
    ],
    [
      "POST",
      "/mxobject/mql",
      multipart("mql", "a.mql"),
      MULTIPART,
      "mql is missing: it is a text here, and not a file.",
    ],
    [
      "POST",
      "/mxobject/search",
      `{"condition":"#/matrix/box:"}`,
      JSON_TYPE,
      "cond is missing, and condition is not known here.",
    ],
    [
      "POST",
      "/script/exec/js",
      `{"filepth":"/a.js"}`,
      JSON_TYPE,
      "filepath is missing, and filepth is not known here; did you mean filepath?",
    ],
    [
      "POST",
      "/admin/users/home",
      "hoem=/page",
      FORM,
      "home is missing, and hoem is not known here; did you mean home?",
    ],
    [
      "POST",
      "/user/settings/home",
      `{"hoem":"/page"}`,
      JSON_TYPE,
      "home is missing, and hoem is not known here; did you mean home?",
    ],
    [
      "PUT",
      "/monitoring/depot/file",
      `${FILE}&type=M&contnt=a`,
      FORM,
      "content is missing, and contnt is not known here; did you mean content?",
    ],
  ])("%s %s %s %s", async (method, path, body, type, text) => {
    const before = world.written();
    expect(await envelope(method, path, body, type)).toMatchObject({ status: "error", code: "invalid", message: text });
    expect(world.written()).toBe(before);
    expect(await message("GET", "/fs/kept.txt?type=file")).toBe("as it was");
  });
});

test("what needs no content, or has it, is taken with a warning for the name that is not known", async () => {
  const told = (name: string) => ({ status: "ok", warnings: [`${name} is not known here and was ignored.`] });
  expect(await envelope("PUT", "/fs/folder?type=dir", "colour=red", FORM)).toMatchObject(told("colour"));
  expect(await envelope("PUT", "/fs/other.txt", "colour=red&data=a", FORM)).toMatchObject(told("colour"));
  expect(await envelope("PUT", "/fs/other.txt?colour=red")).toMatchObject(told("colour"));
  expect(await envelope("PUT", "/fs/null", "colour=red&type=txt&data=null", FORM)).toMatchObject(told("colour"));
  expect(await envelope("POST", "/fs/folder", multipart("content", "a.txt"), MULTIPART)).toEqual({
    status: "ok",
    message: "",
  });
  const mql = "select host from /matrix/box";
  expect(await envelope("POST", "/mxobject/mql", JSON.stringify({ mql, colour: 1 }))).toMatchObject(told("colour"));
  expect(await envelope("POST", `/mxobject/mql?mql=${mql}`, `{"colour":1}`)).toMatchObject(told("colour"));
  expect(await message("POST", "/mxobject/mql", mql)).toEqual([]);
  const noDepot = expect.objectContaining({ code: "not_found" }) as unknown;
  expect(await envelope("PUT", "/monitoring/depot/file", `${FILE}&type=D&colour=red`, FORM)).toEqual(noDepot);
});

test("a body that is not read is told where nothing of it was needed", async () => {
  const ignored = ["The body is neither JSON nor a form, and was ignored."];
  expect(await envelope("POST", "/admin/perms/app/refresh", "garbage")).toMatchObject({
    status: "ok",
    warnings: ignored,
  });
  for (const nothing of ["null", "undefined", `""`, " ", "{}"])
    expect(await envelope("POST", "/admin/perms/app/refresh", nothing)).toEqual({ status: "ok", message: "" });
  const file = await envelope("POST", "/admin/perms/app/refresh", multipart("list", "a.txt"), MULTIPART);
  expect(file).toMatchObject({ status: "ok", warnings: ["The file in list is not read here, and was ignored."] });
  expect(
    await envelope("POST", "/admin/perms/app/refresh", multipart("list", "").replace("abc", ""), MULTIPART),
  ).toEqual({ status: "ok", message: "" });
  const colour = ["colour is not known here and was ignored."];
  expect(await envelope("POST", "/admin/perms/app/refresh", "colour=red", FORM)).toMatchObject({ warnings: colour });
});

test.each(["/mxobject/mql", "/mxobject/search", "/script/exec/js", "/fs/kept.txt", "/admin/perms/group", "/host"])(
  "broken JSON is an error at POST %s",
  async (path) => {
    for (const broken of [`{"mql":"select host from /matrix/box"`, "[draft] a", " {}}"])
      expect(await envelope("POST", path, broken)).toMatchObject({ status: "error", code: "syntax" });
  },
);

describe("a name in a permission that is not there", () => {
  const USER = { parent: "/", otype: "usr", passwd: "a long way to the sea" };
  const group = (content: object) => envelope("POST", "/admin/perms/group", JSON.stringify(content));
  const refused = (code: string, text: string) => ({ status: "error", code, message: text });

  test("is an error, with the nearest, where it is a user, a group, a column or a scope", async () => {
    for (const [content, text, code = "invalid"] of [
      [{ member: ["U/amdin"] }, "member: there is no user /amdin; did you mean /admin?"],
      [{ member: ["U/plant/amdin"] }, "member: there is no user /plant/amdin; did you mean /plant/admin?"],
      [
        { member: ["U/amdin", "U/quite-another", "U/admin"] },
        "member: there is no user /amdin; did you mean /admin? Nor is there /quite-another.",
      ],
      [{ member: ["G/opertors"] }, "There is no group /opertors; did you mean /operators?", "not_found"],
      [{ parent: "/opertors" }, "There is no group /opertors; did you mean /operators?", "not_found"],
      [{ fields: { "/matrix/box": "-hsot" } }, "fields: there is no column hsot; did you mean host?"],
      [{ readexps: ["/matrix/box: hsot = 'a'"] }, "readexps: there is no column hsot; did you mean host?"],
    ] as const)
      expect(await group({ name: "typo", ...content })).toMatchObject(refused(code, text));
    const scopes = { name: "t", scopes: ["objcts:read"] };
    const scope = "There is no permission objcts:read; did you mean objects:read?";
    expect(await envelope("POST", "/user/tokens", JSON.stringify(scopes))).toMatchObject(refused("invalid", scope));
    await message("POST", "/admin/perms/api", `{"name":"pages","path":["/app"]}`);
    const noGroup = refused("not_found", "There is no group /opertors; did you mean /operators?");
    for (const method of ["PUT", "DELETE"] as const)
      expect(await envelope(method, "/admin/perms/api/pages/group?group=/opertors")).toMatchObject(noGroup);
  });

  test("is an error in the groups of a user; a group that the user has stays", async () => {
    const make = (username: string, grpset: readonly string[]) =>
      envelope("POST", "/admin/users/new", JSON.stringify({ ...USER, username, grpset }));
    const text = "grpset: there is no group /opertors; did you mean /operators?";
    expect(await make("ann", ["/viewers", "/opertors"])).toMatchObject(refused("invalid", text));
    expect(await make("ann", ["operators"])).toMatchObject(
      refused("invalid", "grpset: there is no group operators; did you mean /operators?"),
    );
    const { message: night } = (await group({ name: "night" })) as { readonly message: string };
    const { message: ann } = await make("ann", ["/viewers", "/night"]);
    const change = (grpset: readonly string[]) =>
      envelope("POST", `/admin/users/${String(ann)}`, JSON.stringify({ grpset }));
    expect(await change(["/opertors"])).toMatchObject(refused("invalid", text));
    expect(await envelope("DELETE", `/admin/perms/group/${night}`)).toMatchObject({ status: "ok" });
    expect(await change(["/night", "/operators"])).toEqual({ status: "ok", message: "" });
    expect(await change(["/viewers"])).toEqual({ status: "ok", message: "" });
    expect(await change(["/night"])).toMatchObject(refused("invalid", "grpset: there is no group /night."));
  });

  test("is a warning where it is a class, or a column of any class, as these may be made later", async () => {
    const warnings = [
      "There is no class /matrix/bxo now; did you mean /matrix/box?",
      "readexps: no class has a column hsot now; did you mean host?",
    ];
    const content = { readonly: ["/matrix/bxo"], readexps: ["hsot = 'a' and host = 'b' and ctime > 1"] };
    expect(await group({ name: "later", ...content })).toMatchObject({ status: "ok", warnings });
  });
});

test("so is a member that is not known of an import, beside its file", async () => {
  const part = (name: string, value: string, filename = ""): string =>
    `--X\r\ncontent-disposition: form-data; name="${name}"${filename && `; filename="${filename}"`}\r\n\r\n${value}\r\n`;
  const body = `${part("wiat", "true")}${part("uploadfile", "insert into /matrix/box host = 'a'", "a.mql")}--X--\r\n`;
  expect(await envelope("POST", "/mxobject/import", body, MULTIPART)).toMatchObject({
    status: "ok",
    warnings: ["wiat is not known here and was ignored; did you mean wait?"],
  });
});
