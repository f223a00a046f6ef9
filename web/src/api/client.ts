import createClient from "openapi-fetch";
import createQueries from "openapi-react-query";
import { noteLoggedOut, noteSilence } from "./connection";
import { noAnswer, type Problem, problemOf } from "./problem";
import type { components, paths } from "./schema";

/** The types of the server's JSON, generated from its OpenAPI document. */
export type Schemas = components["schemas"];

type Success = 200 | 201 | 202 | 204;
type Throwing<Operation> = Operation extends { responses: infer All }
  ? Omit<Operation, "responses"> & {
      responses: Pick<All, keyof All & Success> & {
        default: { content: { "application/json": Problem } };
      };
    }
  : Operation;

/** What the server can be asked: whatever its answer to a failure holds, a `Problem` is thrown. */
type Asked = {
  [Path in keyof paths]: { [Part in keyof paths[Path]]: Throwing<paths[Path][Part]> };
};

/** Asks the server. What is no success throws a `Problem`; a lost server or session is noted. */
export const api = createClient<Asked>({ baseUrl: window.location.origin });

/** The same as queries and mutations: `$api.useQuery("get", PATH, {params})`. */
export const $api = createQueries(api);

// What a proxy answers where the server does not.
const BY_PROXIES = [502, 504];

api.use({
  async onResponse({ response }) {
    if (BY_PROXIES.includes(response.status)) throw silent();
    if (response.status === 401) noteLoggedOut();
    // Whole, as what breaks off amid its answer has not answered.
    const body = await response.blob().catch((error: unknown) => {
      throw isAbort(error) ? error : silent();
    });
    if (!response.ok) throw problemOf(response.status, jsonOr(await body.text()));
    return new Response(response.status === 204 ? null : body, response);
  },
  onError({ error }) {
    if (!isAbort(error)) return silent();
  },
});

function silent(): Problem {
  noteSilence();
  return noAnswer();
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The data of an answer: `await ask(api.GET(...))`. */
export async function ask<T>(asked: Promise<{ data?: T }>): Promise<T> {
  return (await asked).data as T;
}
