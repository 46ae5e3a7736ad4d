import { expect, test } from "vitest";
import { programSources } from "../helpers/programs/program-sources.ts";

/** The cryptography in the programs must match the table in SECURITY.md. */

const FUNCTIONS =
  "createHash|createHmac|createCipheriv|createDecipheriv|hkdfSync|hash|digest|sign|verify|generateKeyPairSync";
/** Encodings of a digest. */
const FORMS = ["hex", "base64", "base64url"];

const sources = programSources("agent", "common", "controller", "deploy");

/** Matches of the first group of `pattern`, with the files in which they occur. */
function found(pattern: RegExp): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, string[]>();
  for (const { file, text } of sources)
    for (const [, name = ""] of text.matchAll(pattern)) files.set(name, [...(files.get(name) ?? []), file]);
  return files;
}

test("ciphers, hashes and curves are those of the table, and MD5 makes ids of objects only", () => {
  const named = found(new RegExp(`\\b(?:${FUNCTIONS})\\(\\s*"([\\w-]+)"`, "g"));
  expect([...named.keys()].filter((name) => !FORMS.includes(name)).sort()).toEqual([
    // The name of sha256 in Web Cryptography.
    "SHA-256",
    "aes-256-gcm",
    "ec",
    "ed25519",
    "md5",
    "sha256",
  ]);
  expect(new Set(named.get("md5"))).toEqual(new Set(["controller/areas/objects/values/identity.ts"]));
  expect([...found(/namedCurve: "([^"]+)"/g).keys()]).toEqual(["P-256"]);
});

test("no algorithm is chosen by a value", () => {
  expect([...found(/\b(createHash|createHmac|createCipheriv|createDecipheriv|hkdfSync)\((?!\s*")/g)]).toEqual([]);
});

test("of Node's cryptography nothing else is used", () => {
  const imported = [...found(/import (?:type )?\{([^}]+)\} from "(?:node:)?crypto"/g).keys()].flatMap((names) =>
    names.split(",").map((name) => name.replace(/^\s*type| as \w+/g, "").trim()),
  );
  expect([...new Set(imported)].sort()).toEqual([
    "KeyObject",
    "X509Certificate",
    "createCipheriv",
    "createDecipheriv",
    "createHash",
    "createHmac",
    "createPrivateKey",
    "createPublicKey",
    "generateKeyPairSync",
    "hash",
    "hkdfSync",
    "randomBytes",
    "sign",
    "timingSafeEqual",
    "verify",
    "webcrypto",
  ]);
  // The command line loads `randomBytes` only when it writes a file, to start sooner.
  expect([...found(/(import\("(?:node:)?crypto"\)|globalThis\.crypto|\* as \w+ from "(?:node:)?crypto")/g)]).toEqual([
    ['import("node:crypto")', ["controller/cli/contexts/file.ts"]],
  ]);
});

test("bytes that nobody may foresee come from randomBytes; Math.random draws numbers alone", () => {
  const draws = found(/(Math\.random\(\))/g).get("Math.random()");
  expect(draws).toEqual(["agent/main.ts", "controller/main.ts"]);
  for (const { file, text } of sources.filter((source) => draws?.includes(source.file))) {
    expect(text, file).toContain("const random: Random = { next: () => Math.random(), bytes: ");
    expect(text, file).toContain(`import { randomBytes } from "node:crypto";`);
  }
});
