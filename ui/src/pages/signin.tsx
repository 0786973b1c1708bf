import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../data/client";
import { t } from "../language";
import { Button } from "../parts/basics";
import { Labelled } from "../parts/dialog";
import { Mark } from "../parts/mark";
import { inZone } from "../zone";

/** The page for requests that need a token. */
export function SignInPage({ why }: { why: string }) {
  const client = useQueryClient();
  const [wrong, setWrong] = useState<string | null>(null);
  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    try {
      await api.logIn({ token });
      await client.resetQueries();
    } catch (error) {
      setWrong(inZone((error as Error).message));
    }
  };
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center p-4">
      <form onSubmit={send} className="flex flex-col gap-3 rounded-lg border border-line bg-surface p-5 text-sm">
        <h1 className="flex items-center gap-2 text-lg font-semibold">
          <Mark className="size-6 text-accent" /> shiftwork
        </h1>
        <p className="break-words text-muted">{wrong ?? why}</p>
        <Labelled label={t("Token")} hint={t("Create one with: shiftwork token create NAME --role read (or operate)")}>
          <input name="token" type="password" required autoComplete="current-password" className="field" />
        </Labelled>
        <Button type="submit" kind="primary">
          {t("Sign in")}
        </Button>
      </form>
    </main>
  );
}
