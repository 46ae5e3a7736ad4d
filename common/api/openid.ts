import { Type } from "typebox";
import { OWN_PATH } from "./documented.ts";

export const OpenIdBeginInput = Type.Object({
  // The service refuses others, because a browser then gets the sign-in page.
  redirect: Type.Optional(
    Type.String({
      description: "Path of a page of this site to go to",
      documented: OWN_PATH,
    }),
  ),
  remember: Type.Optional(Type.Boolean({ description: "A session that outlives the browser" })),
});

/**
 * Parameters that a provider sends back (RFC 6749, RFC 9207); others are ignored. They have no bounds of their own: the
 * address has one, and a refusal by this schema would be JSON in a browser instead of the sign-in page.
 */
export const OpenIdCallbackInput = Type.Object({
  code: Type.Optional(Type.String({ description: "Code that the provider gives for the account" })),
  state: Type.Optional(Type.String({ description: "Value that the sign-in began with" })),
  iss: Type.Optional(Type.String({ description: "The provider's own address" })),
  error: Type.Optional(Type.String({ description: "Why the provider refuses" })),
  session_state: Type.Optional(Type.String({ description: "Of some providers; without effect" })),
  error_description: Type.Optional(Type.String({ description: "Without effect" })),
});

export const OpenIdLinkInput = Type.Object({
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The caller's present password" }),
});

export const OpenIdLinkReply = Type.String({ description: "Address at the provider where the browser goes on" });

export const OpenIdAccountReply = Type.Object({
  issuer: Type.String({ description: "Empty: no account is linked" }),
  subject: Type.String({ description: "Names the account at the provider" }),
});

export const OpenIdAccountInput = Type.Object({
  userid: Type.String({ maxLength: 20, description: "Id of the user" }),
  subject: Type.String({ minLength: 1, maxLength: 255, description: "The claim sub of the account at the provider" }),
});
