import { Type } from "typebox";

const Text = (maxLength: number) => Type.String({ maxLength });

/** Sign-in for programs: query, form or JSON. */
export const SignInInput = Type.Object({
  /** The installation's only tenant when absent. */
  company: Type.Optional(Text(48)),
  username: Type.String({ minLength: 1, maxLength: 200 }),
  password: Type.String({ minLength: 1, maxLength: 4_096 }),
  remember: Type.Optional(Type.Boolean()),
});

/** The session id, which is also set as cookie. */
export const SignInOutput = Type.String();

/** Sign-in for people. The name comes as `user_name` from the HTML form of existing portals. */
export const LoginInput = Type.Object({
  company: Type.Optional(Text(48)),
  username: Type.Optional(Text(200)),
  user_name: Type.Optional(Text(200)),
  password: Type.Optional(Text(4_096)),
  remember: Type.Optional(Type.Boolean()),
});

export const LoginPageInput = Type.Object({ error: Type.Optional(Text(50)) });

export const LogoutInput = Type.Object({ name: Type.Optional(Text(200)) });

export const NamedLogoutInput = Type.Object({ name: Text(4_096) });
