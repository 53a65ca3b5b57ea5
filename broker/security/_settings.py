"""The settings of listeners, TLS, SASL and connection limits, by Kafka's names with underscores for dots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from ...protocol.compared_fields import ComparedFields
from ...settings import LISTENER, MAX_INT, MAX_LONG, Row, Scope

ClientAuth = Literal["none", "requested", "required"]

#: Default of ``listener.security.protocol.map``: each protocol is a listener's name.
DEFAULT_MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"


@dataclass(eq=False, repr=False)
class SecuritySettings(ComparedFields):
    """Settings of connections and security. Most can be set for one listener: see ``listener_name``."""

    SCOPE: ClassVar[Scope] = LISTENER

    listeners: Annotated[
        str,
        Row(
            "NAME://HOST:PORT with commas; empty: PLAINTEXT on the host and port of the command line",
            commas=True,
        ),
    ] = ""
    advertised_listeners: Annotated[
        str,
        Row(
            "NAME://HOST:PORT told to the clients of a listener; empty: the host and port listened on",
            commas=True,
        ),
    ] = ""
    listener_security_protocol_map: Annotated[
        str,
        Row(
            "NAME:PROTOCOL with commas; protocols are PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL",
            commas=True,
        ),
    ] = DEFAULT_MAP
    listener_name: Annotated[
        Mapping[str, str],
        Row(
            "listener.name.NAME.SETTING (.NAME.MECHANISM.SETTING for SASL): the setting for one listener",
            allowed="a setting of this table",
            sensitive=True,
        ),
    ] = field(default_factory=dict, repr=False)
    inter_broker_listener_name: Annotated[
        str,
        Row(
            "the listener by which brokers of a cluster reach each other; max.connections does not hold it "
            "up: the longest idle of the others makes room"
        ),
    ] = ""
    security_inter_broker_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        Row("without inter.broker.listener.name brokers use the first listener with this protocol"),
    ] = "PLAINTEXT"
    control_plane_listener_name: Annotated[
        str, Row("the listener of admin clients: neither connections nor bytes of the others hold it up")
    ] = ""

    ssl_keystore_type: Annotated[Literal["PEM"], Row("format of ssl.keystore")] = "PEM"
    ssl_keystore_location: Annotated[
        str, Row("file with the private key and the certificate chain; reloaded when it changes")
    ] = ""
    ssl_keystore_certificate_chain: Annotated[str, Row("the chain itself, in place of a file")] = ""
    ssl_keystore_key: Annotated[str, Row("the private key itself, in place of a file", sensitive=True)] = (
        field(default="", repr=False)
    )
    ssl_key_password: Annotated[str, Row("password of the private key", sensitive=True)] = field(
        default="", repr=False
    )
    ssl_truststore_type: Annotated[Literal["PEM"], Row("format of ssl.truststore")] = "PEM"
    ssl_truststore_location: Annotated[
        str, Row("file with the authorities of client certificates; reloaded when it changes")
    ] = ""
    ssl_truststore_certificates: Annotated[str, Row("the authorities themselves, in place of a file")] = ""
    ssl_client_auth: Annotated[
        ClientAuth, Row("whether clients show a certificate; for SASL_SSL only as listener.name.NAME.")
    ] = "none"
    ssl_endpoint_identification_algorithm: Annotated[
        Literal["https", ""],
        Row("brokers look whether another's certificate has the address they connect to; empty: they do not"),
    ] = "https"
    ssl_enabled_protocols: Annotated[str, Row("TLSv1.2 and TLSv1.3, or one of them", commas=True)] = (
        "TLSv1.2,TLSv1.3"
    )
    ssl_principal_mapping_rules: Annotated[
        str, Row("RULE:pattern/replacement/[LU] with commas, DEFAULT for the whole name: certificate to user")
    ] = "DEFAULT"

    sasl_enabled_mechanisms: Annotated[
        str, Row("of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, with commas", commas=True)
    ] = "SCRAM-SHA-256,SCRAM-SHA-512"
    sasl_mechanism_inter_broker_protocol: Annotated[
        str, Row("mechanism by which brokers log in to each other: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    ] = ""
    sasl_jaas_config: Annotated[
        str,
        Row(
            "listener.name.NAME.MECHANISM.sasl.jaas.config=MODULE required, then users of PLAIN, as "
            'user_alice="secret", and the login of brokers at each other, username="..." password="...";',
            sensitive=True,
        ),
    ] = field(default="", repr=False)
    sasl_server_callback_handler_class: Annotated[
        str, Row("kept for settings shared with Apache Kafka; kohort's own are used")
    ] = ""
    sasl_server_max_receive_size: Annotated[
        int, Row("largest request of a client that has not said who it is", 1, MAX_INT)
    ] = 524_288
    connections_max_reauth_ms: Annotated[
        int,
        Row("how long clients are believed who they are before they say it again; 0: for ever", 0, MAX_LONG),
    ] = 0
    connection_failed_authentication_delay_ms: Annotated[
        int, Row("how long the answer to a failed authentication waits", 0, MAX_INT)
    ] = 100
    sasl_oauthbearer_jwks_endpoint_url: Annotated[
        str, Row("https: or file: address of the keys that tokens are signed with")
    ] = ""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[
        int, Row("age at which the keys are fetched again", 1, MAX_LONG)
    ] = 3_600_000
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: Annotated[
        int, Row("least time between two fetches, whatever keys tokens name", 1, MAX_LONG)
    ] = 10_000
    sasl_oauthbearer_expected_audience: Annotated[
        str, Row("tokens must be for one of these, with commas; empty: not looked at", commas=True)
    ] = ""
    sasl_oauthbearer_expected_issuer: Annotated[str, Row("tokens must be from it; empty: not looked at")] = ""
    sasl_oauthbearer_clock_skew_seconds: Annotated[
        int, Row("how far the clock of who issues tokens may be off", 0, MAX_INT)
    ] = 30
    sasl_oauthbearer_sub_claim_name: Annotated[str, Row("claim that names the user")] = "sub"
    kohort_sasl_plain_without_tls: Annotated[
        str, Row("listeners, with commas, where PLAIN sends passwords in the clear (not a setting of Kafka)")
    ] = ""
    kohort_scram_users: Annotated[
        str,
        Row(
            "NAME=PASSWORD with commas: SCRAM users made at a start, unless known (not a setting of Kafka)",
            sensitive=True,
        ),
    ] = field(default="", repr=False)

    max_connections: Annotated[
        int, Row("most connections; of all listeners, or of one", 0, MAX_INT, dynamic="listener")
    ] = 10_000
    max_connections_per_ip: Annotated[
        int, Row("most connections of one address", 0, MAX_INT, dynamic="broker")
    ] = 5_000
    max_connections_per_ip_overrides: Annotated[
        str, Row("ADDRESS:NUMBER with commas: other numbers for some addresses or names", dynamic="broker")
    ] = ""
    max_connection_creation_rate: Annotated[
        int, Row("most new connections a second; of all listeners, or of one", 1, MAX_INT, dynamic="listener")
    ] = MAX_INT
    kohort_connections_over_limit: Annotated[
        Literal["wait", "close"],
        Row("at max.connections new ones wait until one is free, or are closed (not a setting of Kafka)"),
    ] = "wait"
