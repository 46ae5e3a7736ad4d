import { expect } from "vitest";
import { callExamples, type CallExample } from "../runs/call-examples.ts";
import type { FileHttp } from "./file-http.ts";

const KEY_OF_FIRST = " | jq -r '.message[0].key')";

/**
 * Makes the calls of a page in their order. Each must answer what the page shows. A call `key=$(… | jq …)` sets the key
 * that later calls send as `$key`.
 */
export async function expectFileExamples(http: FileHttp, page: string, least: number): Promise<void> {
  const examples = await callExamples(page);
  expect(examples.length).toBeGreaterThan(least);
  let key = "";
  for (const example of examples) {
    const { line, more, answer } = example;
    expect(example.url, line).not.toBe("");
    const text = await answerOf(http, example, key);
    if (more.endsWith(KEY_OF_FIRST)) {
      key = (JSON.parse(text) as { message: { key: string }[] }).message[0]?.key ?? "";
      continue;
    }
    const [is, shown] = [comparable(text), comparable(answer)];
    if (typeof shown === "object") expect(is, line).toMatchObject(shown as object);
    else expect(is, line).toBe(shown);
  }
}

async function answerOf(http: FileHttp, { method = "GET", url, more }: CallExample, key: string): Promise<string> {
  const [, form] = /^ -d ['"]([^'"]*)['"]$/.exec(more) ?? [];
  expect(["", KEY_OF_FIRST], more).toContain(form === undefined ? more : "");
  const [name = "", value = ""] = form?.replace("$key", key).split(/=(.*)/s) ?? [];
  const body = form !== undefined && {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: `${name}=${encodeURIComponent(value)}`,
  };
  return (await http.send({ method: method as "GET", url, ...body })).body;
}

/** Times and keys of answers differ from run to run. */
function comparable(text: string): unknown {
  if (!text.startsWith("{")) return text;
  return JSON.parse(text.replaceAll(/"(time|modified)":\d+/g, '"$1":0').replaceAll(/"key":"[\w-]{43}"/g, '"key":""'));
}
