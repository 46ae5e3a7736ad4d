import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SOAK_PARTS } from "./parts.ts";

const named = SOAK_PARTS.flatMap(({ files }) => files);

const SMALL = /import \{[^}]*\b(TIMES|AGED_CHANGES|seedsOf)\b[^}]*\} from "[^"]*helpers\/time\/times\.ts"/;

test("a soak runs every test file that is small in every run", () => {
  const small = ["common", "controller", "agent", "deploy", "test"]
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`))
    .filter((file) => file.endsWith(".test.ts") && SMALL.test(readFileSync(file, "utf8")))
    .filter((file) => !named.some((one) => file === one || file.startsWith(`${one}/`)));
  expect(small).toEqual([]);
});

test("the files of a soak are there", () => {
  expect(named.filter((one) => !existsSync(one))).toEqual([]);
});
