import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ERROR_CODES } from "../../common/errors.ts";
import { allCommands } from "../../controller/cli/commands/all.ts";
import { COMMON_FLAGS, type CommandDeclaration } from "../../controller/cli/declared/declaration.ts";
import { SETTINGS } from "../../controller/settings/catalogue.ts";
import { operationsOf, socketsOf, type Document, type Parameter, type Schema } from "./reference/document.ts";

const COMMANDS = await allCommands();

/** Everything that a user can name has a description: the reference in the manual shows no empty cell. */

const document = JSON.parse(readFileSync("deploy/docs/openapi.json", "utf8")) as Document;

/** True if the schema, an item of it or one of its forms says its meaning. */
function isDescribed({ description, $ref, items, anyOf = [] }: Schema): boolean {
  if ($ref !== undefined || isMeaning(description)) return true;
  return anyOf.some(isDescribed) || (items !== undefined && isMeaning(items.description));
}

function isMeaning(text: string | undefined): boolean {
  return text !== undefined && text.trim().length > 1;
}

/** Members at any depth without a description. `message` of the envelope has that of its operation. */
function undescribed(schema: Schema, place: string): readonly string[] {
  const { properties = {}, items, additionalProperties, anyOf = [] } = schema;
  const isEnvelope = properties["status"]?.const === "ok";
  const own = Object.entries(properties).flatMap(([name, member]) => {
    const inner = undescribed(member, `${place}.${name}`);
    return isDescribed(member) || (isEnvelope && name === "message") ? inner : [`${place}.${name}`, ...inner];
  });
  const values = typeof additionalProperties === "object" ? [additionalProperties] : [];
  const others = [
    ...(items ? [items] : []),
    ...values,
    ...anyOf,
    ...(schema["x-item-schema"] ? [schema["x-item-schema"]] : []),
  ];
  return [...own, ...others.flatMap((other) => undescribed(other, place))];
}

function undescribedParameters(parameters: readonly Parameter[], place: string): readonly string[] {
  return parameters.flatMap(({ name, description, schema, content = {} }) => {
    const form = schema ?? Object.values(content)[0]?.schema ?? {};
    const own = isMeaning(description) || isDescribed(form) ? [] : [`${place} ${name}`];
    return [...own, ...undescribed(form, `${place} ${name}`)];
  });
}

test("every operation has a summary, and every parameter and member of its body a description", () => {
  const lacking = operationsOf(document).flatMap(({ method, path, described }) => {
    const { summary, parameters = [], requestBody } = described;
    const bodies = Object.values(requestBody?.content ?? {});
    return [
      ...(isMeaning(summary) ? [] : [`${method} ${path}`]),
      ...undescribedParameters(parameters, `${method} ${path}`),
      ...bodies.flatMap(({ schema = {} }) => undescribed(schema, `${method} ${path} body`)),
    ];
  });
  expect(lacking).toEqual([]);
});

test("every member of an answer, of a failure and of a frame has a description", () => {
  const answers = operationsOf(document).flatMap(({ method, path, described }) =>
    Object.entries(described.responses).flatMap(([status, { content = {} }]) =>
      Object.values(content).flatMap(({ schema = {} }) => undescribed(schema, `${method} ${path} ${status}`)),
    ),
  );
  const failures = Object.entries(document.components.schemas).flatMap(([name, schema]) => undescribed(schema, name));
  const frames = socketsOf(document).flatMap(({ path, socket: { parameters = [], frames: sent } }) => [
    ...undescribedParameters(parameters, `WS ${path}`),
    ...Object.values(sent).flatMap(({ schema = {} }) => undescribed(schema, `WS ${path}`)),
  ]);
  expect([...answers, ...failures, ...frames]).toEqual([]);
});

test("every setting, error code, command, argument and option has a description", () => {
  const unset = SETTINGS.filter(({ meaning, default: otherwise }) => !isMeaning(meaning) || otherwise === "");
  const codes = Object.entries(ERROR_CODES).filter(([, { meaning }]) => !isMeaning(meaning));
  expect([...unset.map(({ name }) => name), ...codes.map(([code]) => code), ...silent(COMMANDS)]).toEqual([]);
  expect(COMMON_FLAGS.filter(({ summary }) => !isMeaning(summary))).toEqual([]);
});

function silent(commands: readonly CommandDeclaration[], above = ""): readonly string[] {
  return commands.flatMap(({ name, summary, arguments: words = [], flags = [], commands: below = [] }) => {
    const parts = [...words, ...flags].filter((part) => !isMeaning(part.summary));
    const place = `${above}${name} `;
    return [...(isMeaning(summary) ? [] : [place]), ...parts.map((part) => place + part.name), ...silent(below, place)];
  });
}
