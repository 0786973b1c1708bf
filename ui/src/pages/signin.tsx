import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { act } from "../data/client";
import { Button } from "../parts/basics";
import { Labelled } from "../parts/dialog";

/** For those who do not sit at the machine itself. */
export function SignInPage({ why }: { why: string }) {
  const client = useQueryClient();
  const [wrong, setWrong] = useState<string | null>(null);
  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    try {
      await act("login", { token });
      await client.resetQueries();
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center p-4">
      <form onSubmit={send} className="flex flex-col gap-3 rounded-lg border border-line bg-surface p-5 text-sm">
        <h1 className="text-lg font-semibold">shiftwork</h1>
        <p className="break-words text-muted">{wrong ?? why}</p>
        <Labelled label="Token" hint="shiftwork token create --role read, or operate, makes one">
          <input name="token" type="password" required autoComplete="current-password" className="field" />
        </Labelled>
        <Button type="submit" kind="primary">
          Sign in
        </Button>
      </form>
    </main>
  );
}
