"""``dpsynth keygen`` and ``dpsynth sign``: the office's key, and its signature of a bundle."""

from __future__ import annotations

import sys

import click

from dpsynth._util.environment import variable
from dpsynth.cli.console import Console, output_options
from dpsynth.errors import InputError

VARIABLE = "DPSYNTH_KEY_PASSPHRASE"
SHORT = 12  # characters of a passphrase


@click.command(epilog="Example:  dpsynth keygen office.key")
@click.argument("output", type=click.Path())
@click.option(
    "--no-passphrase", is_flag=True, help="Do not encrypt the key; protect it in another way."
)
@output_options
def keygen(output: str, no_passphrase: bool, as_json: bool, quiet: bool) -> None:
    """Make a key pair to sign bundles with.

    OUTPUT is the private key and OUTPUT.pub the public key. The private key is encrypted with a
    passphrase from DPSYNTH_KEY_PASSPHRASE or a hidden prompt. Both files are PEM, which openssl can
    read. Existing files are never overwritten.
    """
    from dpsynth.bundle.format import check_key_place, create_key, fingerprint, load_public

    with Console(as_json=as_json, quiet=quiet) as console:
        check_key_place(output)
        phrase = None if no_passphrase else ask_passphrase(new=True)
        private, public = create_key(output, phrase)
        digest = fingerprint(load_public(public))
        values = {
            "private": str(private),
            "public": str(public),
            "fingerprint": digest,
            "encrypted": not no_passphrase,
        }
        protection = "unencrypted" if no_passphrase else "encrypted"
        lines = [
            f"private     {private}: {protection}; share it with nobody, and keep a safe copy",
            f"public      {public}: publish it where your readers trust its origin",
            f"SHA-256     {digest}",
        ]
        console.result("keygen", values, lines)
        if phrase is not None and len(phrase) < SHORT:
            console.advice(
                f"The passphrase has fewer than {SHORT} characters, so anyone who copies the file "
                "can guess it. Make a new key with a longer passphrase."
            )
        console.advice(f"Next: dpsynth sign bundle/ --key {private}")


@click.command(epilog="Example:  dpsynth sign bundle/ --key office.key")
@click.argument("bundle", type=click.Path())
@click.option("--key", required=True, type=click.Path(), help="The office's private key.")
@click.option("--force", is_flag=True, help="Replace an existing signature.")
@click.option("--internal", type=click.Path(), help="Internal results; default: BUNDLE.internal.")
@output_options
def sign(
    bundle: str, key: str, force: bool, internal: str | None, as_json: bool, quiet: bool
) -> None:
    """Name what is open, verify BUNDLE, then sign it.

    Before it signs, the command names what is open: gates that were overridden, attacks that could
    have seen no leak, and the reasons that the INTERNAL results give against a release. It decides
    nothing.

    The signature covers the manifest, and through it all files. The signature is
    datapackage.json.sig. Anyone with the public key can check it with dpsynth verify or with
    openssl. If the bundle fails verification, it is not signed and the exit code is 5.
    """
    from dpsynth.assessment.open_points import OpenPoints
    from dpsynth.bundle import sign as sign_bundle
    from dpsynth.stats import is_answers, sign_answers

    with Console(as_json=as_json, quiet=quiet) as console:
        if is_answers(bundle):
            if internal is not None:
                raise click.UsageError("statistics have no internal results; leave out --internal")
            written = sign_answers(bundle, key, lambda: ask_passphrase(new=False), overwrite=force)
            console.result("sign", {"bundle": bundle, "signature": str(written)}, [f"{written}"])
            return
        points = OpenPoints.of(bundle, internal)

        def tell() -> None:
            for line in points.lines():
                console.advice(line)

        signature = sign_bundle(
            bundle, key, lambda: ask_passphrase(new=False), overwrite=force, before=tell
        )
        values = {"bundle": bundle, "signature": str(signature), "open": points.to_dict()}
        console.result("sign", values, [f"{signature}"])
        console.advice(f"Check it anywhere: dpsynth verify {bundle} --key {key}.pub")


def ask_passphrase(*, new: bool) -> str:
    """Take a passphrase from the environment, or ask for it where somebody can answer."""
    if (passphrase := variable(VARIABLE)) is not None:
        return passphrase
    if not sys.stdin.isatty():
        remedy = f"set {VARIABLE}, or run this command in a terminal"
        if new:
            remedy += "; use --no-passphrase for a key without one"
        raise InputError(f"the key needs a passphrase: {remedy}")
    answer: str = click.prompt(
        "Passphrase of the key",
        hide_input=True,
        confirmation_prompt="Repeat the passphrase" if new else False,
        err=True,
    )
    return answer
