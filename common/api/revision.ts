import { Type } from "typebox";

/** The revision in the answers of definitions. */
export const Revision = Type.String({
  description: "Changes with every change of the definition. If-Match of a change checks it.",
});
