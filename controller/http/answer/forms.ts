import type { Answer, BareAnswers, Endpoint } from "../interface/endpoint.ts";

/** Media type of content whose true type is known only when it is read. */
export const ANY_TYPE = "*/*";

/**
 * Makes the check that an answer of one endpoint has a form that the endpoint declares. It throws for another form, so
 * that the document and the answers cannot differ.
 */
export function formCheck({ bare = {}, events }: Pick<Endpoint, "bare" | "events">) {
  return (answer: Answer<unknown>): void => {
    const form = formOf(answer);
    if (!isDeclared(form, answer, { bare, events: events === true })) throw undeclared(form, answer);
  };
}

type Form = "envelope" | "events" | "content" | "json" | "page" | "redirect" | "empty";

function formOf(answer: Answer<unknown>): Form {
  if ("message" in answer || "rows" in answer) return "envelope";
  if ("stored" in answer) return "content";
  for (const form of ["events", "content", "json", "page", "redirect"] as const) if (form in answer) return form;
  return "empty";
}

interface Declared {
  readonly bare: BareAnswers;
  readonly events: boolean;
}

function isDeclared(form: Form, answer: Answer<unknown>, { bare, events }: Declared): boolean {
  switch (form) {
    case "envelope":
      return bare.only !== true;
    case "events":
      return events;
    case "content":
      return "contentType" in answer && declaresType(bare, mediaTypeOf(answer.contentType));
    // An empty answer has a status, which the endpoint declares.
    case "empty":
      return true;
    default:
      return bare[form] !== undefined;
  }
}

function declaresType({ content = {} }: BareAnswers, type: string): boolean {
  return Object.hasOwn(content, type) || Object.hasOwn(content, ANY_TYPE);
}

/** The media type without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

function undeclared(form: Form, answer: Answer<unknown>): Error {
  const what = "contentType" in answer ? `content of the type ${mediaTypeOf(answer.contentType)}` : `answer ${form}`;
  return new Error(`The endpoint does not declare the ${what}.`);
}
